"""A listed name leads to one file, and only some links count as that file."""

from pathlib import Path

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.shell_grammar import CommandNotAllowed
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.program_files import is_same_program, real_file
from controller_client.protocol.messages import Failure, StartInteractiveCmd
from controller_client.system.start_failure import StartFailed
from tests.unit.controller_client.policy.listed_programs import policy_of


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def _real(name: str, directory: Path, *listed: str) -> str:
    return real_file(name, str(directory), lambda path: path in listed)


def test_a_name_is_found_on_the_fixed_path_and_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _program(tmp_path / "bin/echo")
    _program(tmp_path / "other/echo")
    monkeypatch.setenv("PATH", str(tmp_path / "other"))
    monkeypatch.chdir(tmp_path / "other")
    assert _real("echo", tmp_path / "bin") == str(first)
    assert _real(str(first), tmp_path / "other") == str(first)
    for name in ("./echo", "../other/echo", "bin/echo"):
        with pytest.raises(CommandNotAllowed):
            _real(name, tmp_path / "bin")
    with pytest.raises(StartFailed) as missing:
        _real("elsewhere", tmp_path / "bin")
    assert missing.value.failure.code == "PROGRAM_NOT_FOUND"


def test_a_link_to_another_program_is_not_the_name(tmp_path: Path) -> None:
    other = _program(tmp_path / "bin/id")
    (tmp_path / "bin/echo").symlink_to(other)
    with pytest.raises(CommandNotAllowed) as refused:
        _real("echo", tmp_path / "bin")
    assert refused.value.part == "echo"
    assert str(other) in str(refused.value)
    assert _real("echo", tmp_path / "bin", str(other)) == str(other)


def test_a_link_through_links_counts_by_its_end(tmp_path: Path) -> None:
    version = _program(tmp_path / "bin/python3.11")
    (tmp_path / "bin/python3").symlink_to("python3.11")
    (tmp_path / "bin/python").symlink_to("python3")
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/alternative").symlink_to(version)
    (tmp_path / "bin/snake").symlink_to(tmp_path / "etc/alternative")
    assert _real("python3", tmp_path / "bin") == _real("python", tmp_path / "bin") == str(version)
    with pytest.raises(CommandNotAllowed):
        _real("snake", tmp_path / "bin")


@pytest.mark.parametrize(
    ("name", "real", "is_same"),
    [
        ("python3", "/usr/bin/python3.11", True),
        ("gcc", "/usr/bin/gcc-12", True),
        ("/bin/echo", "/usr/bin/echo", True),
        ("echo", "/usr/bin/echo2evil", False),
        ("sh", "/usr/bin/dash", False),
        ("vim", "/usr/bin/vim.basic", False),
        ("python3.11", "/usr/bin/python3", False),
        ("a", "/usr/bin/ab", False),
    ],
)
def test_a_version_is_the_same_program_and_nothing_else_is(
    name: str, real: str, is_same: bool
) -> None:
    assert is_same_program(name, real) is is_same


def _start(command: str) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=1, session_id="s", command=command)


def _refusal(policy: HostPolicy, start: StartInteractiveCmd) -> Failure:
    with pytest.raises(StartFailed) as refused:
        policy.admit(start)
    return refused.value.failure


def test_a_denied_path_means_the_file_that_is_there_now(programs: Path) -> None:
    tool, other = programs / "tool", programs / "sleep"
    policy = policy_of(programs, "tool", "sleep", "cat", str(other), denied=frozenset({str(tool)}))
    # It is not there yet, and then leads to one file and later to another.
    assert policy.admit(_start("sleep 1")).argv
    tool.symlink_to("sleep")
    for line in ("tool", "sleep 1", f"{other} 1", "cat a | sleep 1"):
        assert "denies" in _refusal(policy, _start(line)).message
    tool.unlink()
    tool.symlink_to("cat")
    assert policy.admit(_start("sleep 1")).argv
    assert "denies" in _refusal(policy, _start("cat a")).message


def test_a_name_that_no_file_can_have_is_refused_beside_a_denied_path(programs: Path) -> None:
    denied = frozenset({str(programs / "sleep")})
    policy = policy_of(programs, "cat", denied=denied)
    start = StartInteractiveCmd(seq=1, session_id="s", argv=["/bin/\0x"])
    assert _refusal(policy, start).code == "COMMAND_NOT_ALLOWED"


def test_a_denied_file_is_denied_by_its_other_names_too(programs: Path) -> None:
    (programs / "nap").hardlink_to(programs / "sleep")
    (programs / "sleep-2.0").hardlink_to(programs / "sleep")
    denied = frozenset({str(programs / "sleep")})
    policy = policy_of(programs, "nap", "sleep", "sleep-2.0", "cat", denied=denied)
    for line in ("nap 1", "sleep 1", "sleep-2.0 1"):
        assert "denies" in _refusal(policy, _start(line)).message
    assert policy.admit(_start("cat a")).argv


def test_a_denied_name_means_its_versions_in_every_directory(programs: Path) -> None:
    (programs / "sleep2").write_bytes(b"\x7fELF")
    (programs / "sleep2").chmod(0o755)
    own = str(programs / "sleep2")
    policy = policy_of(programs, "sleep2", own, "cat", denied=frozenset({"sleep"}))
    for line in ("sleep2 1", f"{own} 1"):
        assert "denies" in _refusal(policy, _start(line)).message


def test_a_name_on_the_path_of_the_first_file_that_has_one_is_meant(tmp_path: Path) -> None:
    files = []
    for place in ("first", "second"):
        (tmp_path / place).mkdir()
        (tmp_path / place / "tool").write_bytes(b"\x7fELF")
        (tmp_path / place / "tool").chmod(0o755)
        files.append(
            PolicyFile(
                allowlist=Allowlist.parse(["tool", "sleep"]), search_path=str(tmp_path / place)
            )
        )
    unsaid = PolicyFile(allowlist=Allowlist.parse(["tool", "sleep"]))
    for policy in (HostPolicy(files), HostPolicy([unsaid, *files])):
        admission = policy.admit(_start("tool")).admission
        assert admission is not None
        assert admission.program == str(tmp_path / "first/tool")
        assert _refusal(policy, _start("sleep 1")).code == "PROGRAM_NOT_FOUND"
