"""The files that a command line would run, and whether they are those that were approved."""

import errno
import os
import shutil
from hashlib import sha256
from pathlib import Path

import pytest

import controller_client.policy.named_files as named_files_module
from controller_client.command_policy.directories import line_of, start_of
from controller_client.policy.named_files import Surroundings, named_files, why_changed
from controller_client.program.child_environment import Account


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "deploy.sh"
    file.write_text("echo harmless\n")
    file.chmod(0o755)
    return file


def _paths(command: str, cwd: Path) -> list[str]:
    return [file.path for file in named_files(command, str(cwd))]


def _real(program: str) -> str:
    found = shutil.which(program, path="/usr/local/bin:/usr/bin:/bin")
    assert found is not None
    return str(Path(found).resolve())


def test_a_program_and_its_script_are_named_with_their_digests(script: Path) -> None:
    shell, named = named_files("sh -eu deploy.sh now", str(script.parent))
    assert shell.path == _real("sh")
    assert (named.path, named.sha256) == (str(script), sha256(b"echo harmless\n").hexdigest())


@pytest.mark.parametrize(
    "command",
    [
        "./deploy.sh",
        "sh ./deploy.sh",
        ". ./deploy.sh",
        "env A=1 ./deploy.sh",
        "sh < deploy.sh",
        "<deploy.sh sh",
        "sh -s 0<deploy.sh",
        "exec 3<deploy.sh; sh <&3",
        "sh >/dev/null deploy.sh",
        "sh 2>&1 deploy.sh | cat",
        "sh >&- deploy.sh",
        "sh <<END deploy.sh\nEND\n",
        "sh <<<x deploy.sh",
        "cat deploy.sh | sh",
        "cat < deploy.sh | sudo sh",
        "tac deploy.sh | python3 -",
        "sh -c 'sh deploy.sh'",
        "bash -lc \"exec env sh -c './deploy.sh now'\"",
        "su -c './deploy.sh now'",
        "watch './deploy.sh now'",
        "eval 'sh deploy.sh'",
        "sh <<END\nsh deploy.sh\nEND\n",
        "bash <<< 'sh deploy.sh'",
        "echo 'sh deploy.sh' | sh",
        "python3 -W ignore deploy.sh",
        "bash --rcfile other deploy.sh",
        "node --require=./deploy.sh other",
        "sudo -u root ./deploy.sh",
        "find . -exec sh deploy.sh ;",
        "sh dep*.sh",
        "sh ./[d]eploy.s?",
        "sh {other,deploy}.sh",
        "sh $'deploy.sh'",
        'sh "$PWD"/deploy.sh',
        "sh $(pwd)/deploy.sh",
        "script=deploy.sh; sh $script",
        "name=deploy; export script=${name}.sh; bash -c 'sh \"$script\"'",
        "for script in other deploy.sh; do sh -e $script; done",
        "sh < $PWD/deploy.sh",
        "BASH_ENV=deploy.sh bash -c true",
        "tar --checkpoint-action=exec=./deploy.sh -cf /dev/null other",
        "git -c core.pager=./deploy.sh log",
        "busybox sh deploy.sh",
        "cat deploy.sh | busybox sh",
        "su --command='sh deploy.sh'",
        "env -S'sh deploy.sh now'",
        "ssh -o ProxyCommand='sh deploy.sh' host",
    ],
)
def test_a_script_is_named_however_it_is_run(script: Path, command: str) -> None:
    (script.parent / "other").write_text("")
    assert str(script) in _paths(command, script.parent)


@pytest.mark.parametrize(
    "line",
    [
        "cd below; sh deploy.sh",
        "cd below && ./deploy.sh",
        "(cd below; . ./deploy.sh)",
        "pushd below; sh deploy.sh",
        "command cd -- below; sh deploy.sh",
        "cd be; cd ../below; sh deploy.sh",
        "env -C below sh deploy.sh",
        "env --chdir=below ./deploy.sh",
        "git -C below status; cd below; bash -e deploy.sh",
        "cd / ; cd -; cd below; sh deploy.sh",
        "sh -c 'cd below; sh deploy.sh'",
        "sh <<END\ncd below && ./deploy.sh\nEND\n",
    ],
)
def test_the_script_of_the_directory_that_a_line_goes_to_is_named(script: Path, line: str) -> None:
    below = script.parent / "below"
    below.mkdir()
    (script.parent / "be").mkdir()
    shutil.move(script, below)
    assert str(below / "deploy.sh") in _paths(line, script.parent)


@pytest.mark.parametrize(
    ("line", "read"),
    [
        ("make", ["Makefile"]),
        ("make -j4 all", ["makefile", "GNUmakefile"]),
        ("make -f other.mk", ["other.mk"]),
        ("make -C below", ["below/Makefile"]),
        ("cd below; make CC=gcc", ["below/Makefile"]),
        ("sh -c 'cd below && make all'", ["below/Makefile"]),
        ("npm run build", ["package.json"]),
        ("ninja", ["build.ninja"]),
        ("just deploy", ["justfile"]),
        ("run-parts below", ["below/first", "below/second"]),
        ("sudo run-parts --verbose below", ["below/first"]),
        ("directory=below; run-parts -v ./$directory", ["below/first"]),
    ],
)
def test_what_a_program_reads_of_its_directory_is_named(
    tmp_path: Path, line: str, read: list[str]
) -> None:
    (tmp_path / "below").mkdir()
    for name in read:
        (tmp_path / name).write_text("")
    (tmp_path / "unread").write_text("")
    paths = _paths(line, tmp_path)
    assert {str(tmp_path / name) for name in read} <= set(paths)
    assert str(tmp_path / "unread") not in paths


def test_a_makefile_that_is_new_is_a_change(tmp_path: Path) -> None:
    approved = named_files("make", str(tmp_path))
    assert why_changed("make", (str(tmp_path), {}), approved) is None
    (tmp_path / "GNUmakefile").write_text("all: ; ./deploy.sh\n")
    refused = why_changed("make", (str(tmp_path), {}), approved)
    assert refused is not None
    assert "GNUmakefile" in refused.message


def test_a_script_of_each_directory_is_named_since_either_may_run(script: Path) -> None:
    below = script.parent / "below"
    below.mkdir()
    (below / "deploy.sh").write_text("echo below\n")
    paths = _paths("cd below; sh deploy.sh", script.parent)
    assert {str(script), str(below / "deploy.sh")} <= set(paths)


@pytest.mark.parametrize(
    ("first_line", "named"),
    [
        ("#!{}/own", ["{}/own"]),
        ("#! {}/own -u", ["{}/own"]),
        ("#!/usr/bin/env {}/own", [_real("env"), "{}/own"]),
        ("#!{}/other", ["{}/other", "{}/own"]),
        ("#!own", ["{}/own"]),
        ("#!{}/deploy.sh", []),
        ("#!/nowhere/sh", []),
        ("#!", []),
        ("# !{}/own", []),
    ],
)
def test_what_the_first_line_of_a_script_runs_is_named(
    script: Path, first_line: str, named: list[str]
) -> None:
    place = str(script.parent)
    for name, text in (("own", "own"), ("other", f"#!{place}/own\n"), ("third", "third")):
        (script.parent / name).write_text(text)
        (script.parent / name).chmod(0o755)
    script.write_text(first_line.replace("{}", place) + "\necho harmless\n")
    expected = [str(script), *(name.replace("{}", place) for name in named)]
    assert _paths("./deploy.sh", script.parent) == expected


def test_an_interpreter_that_is_exchanged_is_a_change(script: Path) -> None:
    own = script.with_name("own")
    shutil.copy("/bin/sh", own)
    script.write_text(f"#!{own}\n")
    approved = named_files("./deploy.sh", str(script.parent))
    assert why_changed("./deploy.sh", (str(script.parent), {}), approved) is None
    own.write_text("#!/bin/sh\necho evil\n")
    failure = why_changed("./deploy.sh", (str(script.parent), {}), approved)
    assert failure is not None
    assert failure.code == "CHANGED_SINCE_APPROVAL"
    assert "own" in failure.message


def test_the_program_that_another_one_runs_is_named(script: Path) -> None:
    line = "sudo -u nobody nice -n 5 bash -c 'tail -n 1 notes'"
    assert {_real("nice"), _real("bash"), _real("tail")} <= set(_paths(line, script.parent))


@pytest.mark.parametrize(
    "line",
    [
        "tail -n 5 deploy.sh",
        "cat deploy.sh | grep x",
        "sh other deploy.sh",
        "wc -l < deploy.sh",
        "git commit -m 'mend deploy.sh'",
        "sudo -n tail -f deploy.sh",
        "nice -n 5 grep x deploy.sh",
        "script=deploy.sh; tail $script",
    ],
)
def test_what_is_only_read_is_not_named(script: Path, line: str) -> None:
    (script.parent / "other").write_text("")
    assert str(script) not in _paths(line, script.parent)


@pytest.mark.parametrize("spelling", ["~", "$HOME", '"$HOME"', "${HOME}"])
def test_a_script_at_home_is_named(
    script: Path, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    account = Account("somebody", str(script.parent), "/bin/sh")
    monkeypatch.setattr(named_files_module, "own_account", lambda: account)
    assert str(script) in _paths(f"sh {spelling}/deploy.sh", Path("/"))


@pytest.mark.parametrize("line", ["sh ~/deploy.sh", "sh $HOME/deploy.sh", "sh deploy.sh"])
def test_a_script_in_the_home_that_the_caller_gives_is_compared(script: Path, line: str) -> None:
    env = {"HOME": str(script.parent)}
    approved = named_files(line_of(line, env), start_of(None, env))
    assert str(script) in [file.path for file in approved]
    assert why_changed(line, (None, env), approved) is None
    script.write_text("rm -rf /srv\n")
    assert why_changed(line, (None, env), approved) is not None


def test_a_word_of_signs_alone_is_looked_at_in_no_more_than_a_few_parts(tmp_path: Path) -> None:
    assert _paths("tar --x" + "=" * 60_000, tmp_path) == [_real("tar")]


def test_a_pattern_is_not_matched_with_a_huge_directory(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(named_files_module, "MAX_ENTRIES", 2)
    (script.parent / "other").write_text("")
    assert str(script) in _paths("sh dep*", script.parent)
    (script.parent / "another").write_text("")
    assert str(script) not in _paths("sh dep*", script.parent)


def test_a_file_that_a_pattern_stands_for_now_is_a_change(script: Path) -> None:
    approved = named_files("sh *.sh", str(script.parent))
    (script.parent / "a.sh").write_text("rm -rf /srv\n")
    assert why_changed("sh *.sh", (str(script.parent), {}), approved) is not None


def test_every_command_of_a_line_is_named_and_data_is_not(script: Path) -> None:
    (script.parent / "data").write_text("x")
    line = "cat data && { ls | tail; } && echo $(./deploy.sh)"
    paths = _paths(line, script.parent)
    assert {_real("cat"), _real("ls"), _real("tail"), str(script)} <= set(paths)
    assert str(script.parent / "data") not in paths


@pytest.mark.parametrize(
    "command",
    ["", "nothing-there", "'", "sh \0", "no\0program x", "./no\0program", "echo", "sh -s now"],
)
def test_what_names_no_file_is_no_error(tmp_path: Path, command: str) -> None:
    assert str(tmp_path) not in "".join(_paths(command, tmp_path))


@pytest.mark.parametrize(("script", "cwd"), [("a\0b", "/srv"), ("a", "/s\0rv")])
def test_a_script_that_no_file_can_be_is_named_without_a_digest(script: str, cwd: str) -> None:
    named = {file.path: file.sha256 for file in named_files(f"sh {script}", cwd)}
    assert named[f"{cwd}/{script}"] == ""


@pytest.mark.parametrize("line", ["sh -c tail", "bash -lc tail", "bash -c -o pipefail tail x"])
def test_a_line_of_one_word_is_looked_at_too(tmp_path: Path, line: str) -> None:
    assert _real("tail") in _paths(line, tmp_path)


def test_a_script_that_a_shell_finds_on_its_path_is_named(script: Path, tmp_path: Path) -> None:
    around = Surroundings("/", (f"/usr/bin:/bin:{script.parent}",))
    for line in ("bash deploy.sh", "sudo bash -e deploy.sh", "bash -o pipefail deploy.sh"):
        assert str(script) in [file.path for file in named_files(line, "/", around)]


@pytest.mark.parametrize("line", ["node deploy", "nice python3 -u deploy", "bash -e deploy now"])
def test_a_script_that_is_not_found_is_named_without_a_digest(tmp_path: Path, line: str) -> None:
    (tmp_path / "deploy.js").write_text("")
    files = named_files(line, str(tmp_path))
    assert (str(tmp_path / "deploy"), "") in [(file.path, file.sha256) for file in files]


@pytest.mark.parametrize(
    "line",
    ["python3 -c pass now", "perl -pe s/a/b/ log", "sed s/a/b/", "bash -c deploy", "node -p 1"],
)
def test_code_is_no_script_that_is_not_found(tmp_path: Path, line: str) -> None:
    assert str(tmp_path) not in "".join(_paths(line, tmp_path))


def test_a_change_of_what_would_run_is_told(script: Path) -> None:
    command, cwd = "sh deploy.sh", str(script.parent)
    approved = named_files(command, cwd)
    assert why_changed(command, (cwd, {}), approved) is None
    script.write_text("rm -rf /srv\n")
    changed = why_changed(command, (cwd, {}), approved)
    assert changed is not None
    assert changed.code == "CHANGED_SINCE_APPROVAL"
    assert str(script) in changed.message
    script.write_text("echo harmless\n")
    assert why_changed(command, (cwd, {}), approved) is None
    script.unlink()
    assert why_changed(command, (cwd, {}), approved) is not None


def test_a_link_that_leads_elsewhere_now_is_a_change(script: Path, tmp_path: Path) -> None:
    link, other = tmp_path / "current", tmp_path / "other.sh"
    link.symlink_to(script)
    approved = named_files("sh current", str(tmp_path))
    other.write_text("echo harmless\n")
    link.unlink()
    link.symlink_to(other)
    assert why_changed("sh current", (str(tmp_path), {}), approved) is not None


@pytest.mark.parametrize(
    ("number", "code"), [(errno.EMFILE, "RESOURCE_EXHAUSTED"), (errno.EIO, "START_FAILED")]
)
def test_a_file_that_cannot_be_read_now_has_not_changed(
    script: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: str
) -> None:
    approved = named_files("./deploy.sh", str(script.parent))

    def failing(*_: object) -> str:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(named_files_module, "file_digest", failing)
    refused = why_changed("./deploy.sh", (str(script.parent), {}), approved)
    assert refused is not None
    assert refused.code == code


def test_a_file_that_is_closed_to_us_is_named_without_a_digest(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def closed(*_: object) -> str:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(named_files_module, "file_digest", closed)
    assert [file.sha256 for file in named_files("./deploy.sh", str(script.parent))] == [""]


def test_a_fifo_in_the_place_of_a_script_is_not_waited_for(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program can put the FIFO there between the look for the file and its opening."""
    script.unlink()
    os.mkfifo(script)
    monkeypatch.setattr(Path, "is_file", lambda self: self == script or self.exists())
    _, named = named_files("sh deploy.sh", str(script.parent))
    assert (named.path, named.sha256) == (str(script), "")


def test_a_script_whose_name_is_no_text_is_compared(script: Path) -> None:
    odd = script.with_name("d\udcff.sh")
    script.rename(odd)
    script.symlink_to(odd)
    line = "sh deploy.sh"
    approved = named_files(line, str(script.parent))
    assert approved[-1].path == f"{script.parent}/d\\udcff.sh"
    place = (str(script.parent), {})
    assert why_changed(line, place, approved) is None
    odd.write_text("echo harm\n")
    refused = why_changed(line, place, approved)
    assert refused is not None
    assert refused.code == "CHANGED_SINCE_APPROVAL"
