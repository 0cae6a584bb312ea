"""A program on a PTY with a TerminalWatcher, without a holder, daemon or server."""

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Self

import pexpect

from controller_client.system.users.two_users import become_program_user
from controller_client.terminal_state import TerminalWatcher, Verdict

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TERM": "xterm-256color",
}


def _become_program() -> None:
    """Do in the fork what a holder does for its program.

    It undoes what nohup and background jobs ignore, and takes the program's user if that is
    another one.
    """
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    become_program_user()


class BareTerminal:
    """Drives the watcher as a holder does: drain, look, sleep as long as the watcher says."""

    def __init__(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, cwd: str = "/"
    ) -> None:
        environment = {**ENVIRONMENT, "HOME": cwd, **(env or {})}
        self.process = pexpect.spawn(
            argv[0],
            list(argv[1:]),
            env=environment,
            cwd=cwd,
            dimensions=(24, 100),
            timeout=None,
            preexec_fn=_become_program,
        )
        self.process.delaybeforesend = None
        self.master: int = self.process.child_fd
        os.set_blocking(self.master, False)
        self.watcher = self.new_watcher()
        self.output = bytearray()
        self.verdict = Verdict("running")
        self.looks = 0
        self.look_seconds = 0.0
        self.is_closed = False

    def new_watcher(self) -> TerminalWatcher:
        """Another watcher on the same terminal."""
        return TerminalWatcher(self.master, self.process.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def drain(self) -> bool:
        """Read until the master is empty; True if anything came.

        The program's queries are answered as a terminal answers them.
        """
        came = False
        while not self.is_closed:
            try:
                data = os.read(self.master, 65536)
            except BlockingIOError:
                break
            except OSError:  # EIO: the last slave was closed
                data = b""
            if not data:
                self.is_closed = True
                break
            came = True
            self.output += data
            answer = self.watcher.on_output(data)
            if answer:
                os.write(self.master, answer)
        return came

    def send(self, data: bytes) -> None:
        """Type ``data``, and forget the output before it."""
        self.output.clear()
        self.watcher.before_input(data)
        os.write(self.master, data)

    def step(self, longest: float) -> Verdict:
        """Look once, then sleep for at most ``longest`` seconds."""
        before = time.thread_time()
        self.verdict, delay = self.watcher.look(self.drain)
        self.look_seconds += time.thread_time() - before
        self.looks += 1
        if not self.verdict.is_waiting or longest > 0:
            self._sleep(longest if delay is None else min(delay, longest))
        return self.verdict

    def _sleep(self, seconds: float) -> None:
        # select keeps microseconds; epoll and poll would round up to milliseconds.
        if select.select([self.master], [], [], seconds)[0]:
            self.drain()

    def wait(self, seconds: float) -> Verdict:
        """Look until the program waits for input, closes its terminal, or ``seconds`` are over."""
        deadline = time.monotonic() + seconds
        while not self.is_closed:
            before = time.thread_time()
            self.verdict, delay = self.watcher.look(self.drain)
            self.look_seconds += time.thread_time() - before
            self.looks += 1
            left = deadline - time.monotonic()
            if self.verdict.is_waiting or left <= 0:
                break
            self._sleep(left if delay is None else min(delay, left))
        return self.verdict

    def exit_status(self) -> int:
        """The exit code, or minus the signal, of a program that has closed its terminal."""
        status = os.waitid(os.P_PID, self.process.pid, os.WEXITED | os.WNOWAIT)
        assert status is not None
        return status.si_status if status.si_code == os.CLD_EXITED else -status.si_status

    def close(self) -> None:
        """Kill the program's session and close the terminal."""
        self.watcher.close()
        for kill in (os.killpg, os.kill):
            with suppress(OSError):
                kill(self.process.pid, signal.SIGKILL)
        self.process.close(force=True)
