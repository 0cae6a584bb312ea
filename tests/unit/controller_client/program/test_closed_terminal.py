"""A terminal whose name is closed: who opens it by name is kept out, or noticed."""

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.program.closed_terminal import ClosedTerminal

_OPEN = "import os, sys; os.open(sys.argv[1], os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)"


@pytest.fixture
def terminal() -> Iterator[tuple[ClosedTerminal, str]]:
    """A terminal on which a process sleeps, and its name."""
    closed = ClosedTerminal()
    pid, master = closed.fork()
    if pid == 0:
        os.write(1, os.ttyname(0).encode() + b"\n")
        signal.pause()
        os._exit(0)
    try:
        assert select.select([master], [], [], 10)[0]
        yield closed, os.read(master, 100).decode().strip()
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(master)
        closed.close()


def test_no_other_program_of_the_user_opens_it_by_name(
    terminal: tuple[ClosedTerminal, str],
) -> None:
    closed, name = terminal
    # Root may open what it likes, so an ordinary user's rights are taken.
    weak = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    told = subprocess.run(
        [*weak, sys.executable, "-c", _OPEN, name], capture_output=True, text=True, check=False
    )
    assert "PermissionError" in told.stderr
    assert closed.is_closed()


def test_rights_that_are_given_back_end_the_proof_for_ever(
    terminal: tuple[ClosedTerminal, str],
) -> None:
    closed, name = terminal
    assert closed.is_closed()
    Path(name).chmod(0o600)
    Path(name).chmod(0)
    assert not closed.is_closed()
    assert not closed.is_closed()


def test_a_closed_terminal_is_the_controlling_one_of_its_process() -> None:
    closed = ClosedTerminal()
    pid, master = closed.fork()
    if pid == 0:
        is_led = os.tcgetpgrp(0) == os.getpid() and os.open("/dev/tty", os.O_RDWR) >= 0
        os._exit(0 if is_led else 1)
    assert os.waitpid(pid, 0)[1] == 0
    os.close(master)
    closed.close()
    assert not closed.is_closed()
