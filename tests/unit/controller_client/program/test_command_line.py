"""Which command lines run by themselves, which in a shell, and where their programs are found."""

import errno
import os
import shlex
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller_client.program.command_line import argv_for, resolve_program
from controller_client.system.start_failure import StartFailed


@pytest.mark.parametrize(
    ("command", "argv"),
    [
        ("ls", ["ls"]),
        ("  ls   -l /tmp  ", ["ls", "-l", "/tmp"]),
        ("grep 'a b' \"c d\"", ["grep", "a b", "c d"]),
        ("python3 -c 'print(1); x = [2]'", ["python3", "-c", "print(1); x = [2]"]),
        ('echo "it\'s"', ["echo", "it's"]),
        ("echo '$HOME `id` \\'", ["echo", "$HOME `id` \\"]),
        ("ssh user@host.example -p 22", ["ssh", "user@host.example", "-p", "22"]),
        ("git commit -m ''", ["git", "commit", "-m", ""]),
    ],
)
def test_a_plain_command_runs_by_itself(command: str, argv: list[str]) -> None:
    assert argv_for(command) == argv


@pytest.mark.parametrize(
    "command",
    [
        "sleep 1 && echo done",
        "ls | wc",
        "echo $HOME",
        'echo "$HOME"',
        'echo "`id`"',
        "ls *.py",
        "FOO=1 env",
        "cd /tmp",
        "source x",
        "if true; then echo; fi",
        "~/bin/tool",
        "echo a\\ b",
        "echo {a,b}",
        "! true",
        "echo hi # comment",
        "line one\nline two",
        "echo 'unbalanced",
        "'' arg",
    ],
)
def test_anything_a_shell_would_interpret_runs_in_one(command: str) -> None:
    shell, flag, line = argv_for(command)
    assert (Path(shell).name, flag, line) == ("bash", "-c", command)


@pytest.mark.parametrize("command", ["", "   ", "\n", "ls \0"])
def test_what_is_no_command_is_refused(command: str) -> None:
    with pytest.raises(StartFailed) as refused:
        argv_for(command)
    assert refused.value.failure.code == "START_FAILED"


@given(
    st.lists(
        st.text(min_size=1, max_size=20).filter(lambda word: "\0" not in word),
        min_size=1,
        max_size=5,
    )
)
def test_quoted_words_come_out_as_they_went_in_or_go_to_a_shell_unchanged(words: list[str]) -> None:
    command = shlex.join(words)
    argv = argv_for(command)
    assert argv in (words, ["/bin/bash", "-c", command])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    for place, mode in (("one/tool", 0o644), ("two/tool", 0o755), ("one/only", 0o644)):
        (tmp_path / place).write_text("")
        (tmp_path / place).chmod(mode)
    return tmp_path


def test_a_program_is_the_first_on_the_path_that_can_be_run(directory: Path) -> None:
    path = f"{directory}/missing:{directory}/one:{directory}/two"
    assert resolve_program("tool", path, "/") == f"{directory}/two/tool"


def test_a_program_with_a_slash_is_looked_for_below_the_working_directory(directory: Path) -> None:
    assert resolve_program("./two/tool", "", str(directory)) == f"{directory}/two/tool"
    assert resolve_program(f"{directory}/two/tool", "", "/") == f"{directory}/two/tool"


@pytest.mark.parametrize(
    ("program", "code", "errno_name"),
    [
        ("nothing", "PROGRAM_NOT_FOUND", "ENOENT"),
        ("only", "PROGRAM_NOT_EXECUTABLE", "EACCES"),
        ("./one", "PROGRAM_NOT_EXECUTABLE", "EISDIR"),
        ("./one/only/deeper", "PROGRAM_NOT_FOUND", "ENOENT"),
        ("on\0ly", "PROGRAM_NOT_FOUND", "ENOENT"),
        ("./on\0ly", "PROGRAM_NOT_FOUND", "ENOENT"),
    ],
)
def test_what_cannot_be_run_says_why(
    directory: Path, program: str, code: str, errno_name: str
) -> None:
    with pytest.raises(StartFailed) as refused:
        resolve_program(program, f"{directory}/one", str(directory))
    assert (refused.value.failure.code, refused.value.failure.errno_name) == (code, errno_name)


def test_a_program_that_nobody_can_look_for_is_not_called_unusable(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_memory(_path: Path) -> None:
        raise OSError(errno.ENOMEM, os.strerror(errno.ENOMEM))

    monkeypatch.setattr(Path, "stat", without_memory)
    with pytest.raises(StartFailed) as refused:
        resolve_program("tool", f"{directory}/two", "/")
    assert refused.value.failure.code == "RESOURCE_EXHAUSTED"


def test_a_fifo_in_the_place_of_a_program_is_not_executable(directory: Path) -> None:
    os.mkfifo(directory / "fifo", 0o755)
    with pytest.raises(StartFailed) as refused:
        resolve_program("./fifo", "", str(directory))
    assert refused.value.failure.errno_name == "EACCES"
