"""Whether a process still runs the file it was started from, told by the kernel alone."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller_client.program.started_program import ImageWatch, StartedProgram, identity_of_file
from controller_client.system.process_tree import read_process
from tests.support.waiting import wait_until


@pytest.fixture
def shell(tmp_path: Path) -> str:
    """A shell whose file is this test's own."""
    return str(shutil.copy("/bin/bash", tmp_path / "shell"))


@pytest.fixture
def run(shell: str) -> Iterator[Callable[[str], "subprocess.Popen[bytes]"]]:
    """Run a script in it, up to where it reads."""
    started = []

    def begin(script: str) -> "subprocess.Popen[bytes]":
        process = subprocess.Popen(
            [shell, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        started.append(process)
        wait_until(lambda: _sleeps(process.pid, shell), 10, "the shell to read")
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def _sleeps(pid: int, shell: str) -> bool:
    info = read_process(pid)
    return info is not None and info.state == "S" and _file_of(pid) == shell


def _file_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/exe").readlink())


def _go_on(process: "subprocess.Popen[bytes]", times: int = 1) -> None:
    assert process.stdin is not None
    process.stdin.write(b"\n" * times)
    process.stdin.flush()


def _watch(shell: str) -> ImageWatch:
    watch = ImageWatch.begin(shell)
    assert watch is not None
    return watch


def test_a_process_that_becomes_another_program_is_found_out(
    shell: str, run: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    watch = _watch(shell)
    process = run("read x; exec sleep 60")
    assert watch.is_unchanged(process.pid)
    _go_on(process)
    wait_until(lambda: _file_of(process.pid) != shell, 10, "the other program")
    assert not watch.is_unchanged(process.pid)
    assert not watch.is_unchanged(process.pid)
    watch.close()


def test_a_program_that_execs_before_the_first_look_is_noticed(
    shell: str,
    run: Callable[[str], "subprocess.Popen[bytes]"],
) -> None:
    watch = _watch(shell)
    process = run("read x; exec sleep 60")
    _go_on(process)
    wait_until(lambda: _file_of(process.pid) != shell, 10, "the other program")
    assert not watch.is_unchanged(process.pid)
    watch.close()


def test_another_process_of_the_file_proves_nothing_against_one_that_slept(
    shell: str,
    run: Callable[[str], "subprocess.Popen[bytes]"],
) -> None:
    watch = _watch(shell)
    process = run("read x; read y; sleep 60")
    assert watch.is_unchanged(process.pid)
    subprocess.run([shell, "-c", "true"], check=True)
    assert watch.is_unchanged(process.pid)
    watch.close()


def test_what_ran_while_another_process_of_the_file_ended_is_not_known(
    shell: str, run: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    watch = _watch(shell)
    process = run("read x; read y; true")
    assert watch.is_unchanged(process.pid)
    counter = Path(f"/proc/{process.pid}/schedstat").read_bytes()
    subprocess.run([shell, "-c", "true"], check=True)
    _go_on(process)
    wait_until(
        lambda: Path(f"/proc/{process.pid}/schedstat").read_bytes() != counter,
        10,
        "the shell to go on",
    )
    assert not watch.is_unchanged(process.pid)
    watch.close()


def test_a_watch_that_is_closed_proves_nothing(
    shell: str, run: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    watch = _watch(shell)
    process = run("read x")
    watch.close()
    assert not watch.is_unchanged(process.pid)


def test_the_file_of_a_process_of_ours_is_told_by_the_kernel(
    shell: str, run: Callable[[str], "subprocess.Popen[bytes]"]
) -> None:
    program = StartedProgram.about_to_run(shell)
    process = run("read x; exec sleep 60")
    assert program.file == identity_of_file(shell)
    assert program.is_run_by(process.pid) is True
    _go_on(process)
    wait_until(lambda: _file_of(process.pid) != shell, 10, "the other program")
    assert program.is_run_by(process.pid) is False
    assert StartedProgram.about_to_run("/nowhere").is_run_by(process.pid) is None
