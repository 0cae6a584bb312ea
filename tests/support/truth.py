"""Programs with their ground truth: when they really wait for input, when they really work, how they end."""

import ctypes  # noqa: F401 - for relays, while the interpreter's library can still be read
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.support.accounts import Account
from tests.support.bare_terminal import BareTerminal

PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Waits:
    """Once ``text`` (a regular expression) has appeared the program waits for input of one of ``kinds``; then we type."""

    text: str
    kinds: str
    send: bytes | None = None
    evidence: str = "kernel"

    def check(self, terminal: BareTerminal) -> str | None:
        """Why the watcher was wrong, if it was."""
        verdict = terminal.wait(PATIENCE_SECONDS)
        shown = terminal.output[-300:].decode("utf-8", "replace")
        if not verdict.is_waiting:
            return f"never seen waiting after {self.text!r}: {verdict}, output {shown!r}"
        if not re.search(self.text, terminal.output.decode("utf-8", "replace"), re.DOTALL):
            return f"claimed before {self.text!r}: {verdict}, output {shown!r}"
        if verdict.kind not in self.kinds.split("|"):
            return f"kind {verdict.kind} instead of {self.kinds} at {self.text!r}: {verdict}"
        if verdict.evidence not in self.evidence.split("|"):
            return f"evidence {verdict.evidence} instead of {self.evidence} at {self.text!r}: {verdict}"
        if self.send is not None:
            terminal.send(self.send)
        return None


@dataclass(frozen=True)
class Works:
    """For ``seconds`` from here on it works, whatever it printed: any claim is wrong."""

    seconds: float
    after: str = ""

    def check(self, terminal: BareTerminal) -> str | None:
        """Why the watcher was wrong, if it was."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(self.after, terminal.output.decode("utf-8", "replace")):
            if terminal.step(0.05).is_waiting or time.monotonic() > deadline:
                return f"waiting for {self.after!r}: {terminal.verdict}"
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0 and not terminal.is_closed:
            if terminal.step(left).is_waiting:
                return f"claimed while it worked: {terminal.verdict}, output {bytes(terminal.output[-200:])!r}"
        return None


@dataclass(frozen=True)
class Ends:
    """It ends, with ``status`` if that matters."""

    status: int | None = 0

    def check(self, terminal: BareTerminal) -> str | None:
        """Why the watcher was wrong, if it was."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not terminal.is_closed and time.monotonic() < deadline:
            if terminal.step(0.05).is_waiting:
                return f"claimed instead of ending: {terminal.verdict}, output {bytes(terminal.output[-200:])!r}"
        if not terminal.is_closed:
            return f"did not end: {terminal.verdict}"
        status = terminal.exit_status()
        return f"ended with {status}" if self.status is not None and status != self.status else None


@dataclass(frozen=True)
class Scenario:
    """A program and what it does, step by step. ``{home}`` in an argument is a directory of its own."""

    name: str
    argv: tuple[str, ...]
    steps: tuple[Waits | Works | Ends, ...]
    needs: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def play(self, home: str) -> str | None:
        """Run it in this process; what was wrong, or None."""
        argv = [argument.replace("{home}", home) for argument in self.argv]
        with BareTerminal(argv, env={**self.env, "HOME": home}, cwd=home) as terminal:
            for step in self.steps:
                problem = step.check(terminal)
                if problem:
                    return problem
        return None


def as_user(account: Account, play: Callable[[], Any]) -> Any:
    """The outcome of ``play`` in a fork that became ``account`` for good.

    An ordinary user may not be able to execute this interpreter, but a fork of it goes on running.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _play_and_exit(account, play, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    outcome = json.loads(answer)
    assert "error" not in outcome, outcome["error"]
    return outcome["value"]


def _play_and_exit(account: Account, play: Callable[[], Any], writer: int) -> None:
    try:
        os.initgroups(account.name, account.gid)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        os.environ.update(HOME=str(account.home), USER=account.name, LOGNAME=account.name)
        answer = {"value": play()}
    except BaseException:  # noqa: BLE001 - a fork of pytest must end here, whatever happened
        answer = {"error": traceback.format_exc()}
    os.write(writer, json.dumps(answer).encode())
    sys.stdout.flush()
    os._exit(0)
