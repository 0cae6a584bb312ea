"""The pseudo-console behind the interface every program has; what pywinpty does is stood in for,
since it exists on Windows alone.
"""

import socket
import sys
from types import ModuleType
from typing import Any

import pytest

from controller_client.program.child_setup import Launch
from controller_client.program.windows_process import WindowsProcess
from controller_client.system.start_failure import StartFailed
from tests.support.waiting import wait_until

LAUNCH = Launch(
    program="wsl.exe", argv=["wsl.exe", "--exec", "cat"], env={"TERM": "xterm"}, cwd="C:\\Users"
)


class Console:
    """What ``winpty.PtyProcess`` is to its users: a socket to read from, and methods."""

    def __init__(self) -> None:
        self.fileobj, self.far_end = socket.socketpair()
        self.pid = 77
        self.written: list[str] = []
        self.size = (0, 0)
        self.asked_for: dict[str, Any] = {}

    def write(self, text: str) -> int:
        self.written.append(text)
        return len(text)

    def setwinsize(self, rows: int, cols: int) -> None:
        self.size = (rows, cols)

    def close(self, force: bool = False) -> None:
        assert force
        self.fileobj.close()
        self.far_end.close()


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console()

    class PtyProcess:
        @staticmethod
        def spawn(argv: list[str], **asked_for: Any) -> Console:
            console.asked_for = {"argv": argv, **asked_for}
            return console

    winpty = ModuleType("winpty")
    winpty.PtyProcess = PtyProcess
    monkeypatch.setitem(sys.modules, "winpty", winpty)
    return console


@pytest.mark.requirement("S4.R3.2")
def test_a_program_on_a_console_is_read_typed_to_resized_and_closed(console: Console) -> None:
    process = WindowsProcess.start(LAUNCH, rows=24, cols=120)
    assert console.asked_for == {
        "argv": LAUNCH.argv,
        "cwd": "C:\\Users",
        "env": {"TERM": "xterm"},
        "dimensions": (24, 120),
    }
    (descriptor,) = process.output_fds
    assert (process.pid, process.io_mode, process.read(descriptor, 10)) == (77, "pty", b"")
    console.far_end.send(b"Name: ")
    wait_until(lambda: process.read(descriptor, 100) == b"Name: ", 30, "the prompt")
    console.far_end.send(b"0011Ignore")
    assert process.read(descriptor, 100) == b""
    assert process.write("Jürgen\r".encode()) == 8
    process.resize(50, 100)
    process.close_input()
    assert (console.written, console.size) == (["Jürgen\r"], (50, 100))
    process.close()
    assert process.output_fds == {}


def test_a_console_whose_program_is_gone_has_nothing_more_to_show(console: Console) -> None:
    process = WindowsProcess.start(LAUNCH, rows=24, cols=120)
    (descriptor,) = process.output_fds
    console.far_end.close()
    assert (process.read(descriptor, 10), process.output_fds) == (None, {})
    process.close()


@pytest.mark.requirement("S4.R3.2", "S4.R7.1")
def test_without_pywinpty_the_start_fails_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winpty", None)
    with pytest.raises(StartFailed, match="pywinpty"):
        WindowsProcess.start(LAUNCH, rows=24, cols=120)
