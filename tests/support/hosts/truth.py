"""Programs with the truth about them: when they wait for input, when they work, how they end."""

import ctypes  # noqa: F401 - relays need it in a fork that may not read the interpreter's library
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
from tests.support.hosts.bare_terminal import BareTerminal

PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Waits:
    """The step in which the program waits for input, and the test then types ``send``.

    The wait begins once ``text`` (a regular expression) has appeared. Its kind is one of ``kinds``,
    and its evidence one of ``evidence``, each separated by ``|``.
    """

    text: str
    kinds: str
    send: bytes | None = None
    evidence: str = "kernel"

    def check(self, terminal: BareTerminal) -> str | None:
        """Say what the watcher got wrong; None if it was right."""
        verdict = terminal.wait(PATIENCE_SECONDS)
        shown = terminal.output[-300:].decode("utf-8", "replace")
        if not verdict.is_waiting:
            return f"never seen waiting after {self.text!r}: {verdict}, output {shown!r}"
        if not re.search(self.text, terminal.output.decode("utf-8", "replace"), re.DOTALL):
            return f"claimed before {self.text!r}: {verdict}, output {shown!r}"
        if verdict.kind not in self.kinds.split("|"):
            return f"kind {verdict.kind} instead of {self.kinds} at {self.text!r}: {verdict}"
        if verdict.evidence not in self.evidence.split("|"):
            return (
                f"evidence {verdict.evidence} instead of {self.evidence} at {self.text!r}: "
                f"{verdict}"
            )
        if self.send is not None:
            terminal.send(self.send)
        return None


@dataclass(frozen=True)
class Works:
    """The step in which the program works for ``seconds``, whatever it prints.

    The step begins once ``after`` has appeared. Any claim that the program waits is wrong.
    """

    seconds: float
    after: str = ""

    def check(self, terminal: BareTerminal) -> str | None:
        """Say what the watcher got wrong; None if it was right."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(self.after, terminal.output.decode("utf-8", "replace")):
            if terminal.step(0.05).is_waiting or time.monotonic() > deadline:
                return f"waiting for {self.after!r}: {terminal.verdict}"
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0 and not terminal.is_closed:
            if terminal.step(left).is_waiting:
                return (
                    f"claimed while it worked: {terminal.verdict}, output "
                    f"{bytes(terminal.output[-200:])!r}"
                )
        return None


@dataclass(frozen=True)
class Ends:
    """The step in which the program ends, with ``status`` unless that is None."""

    status: int | None = 0

    def check(self, terminal: BareTerminal) -> str | None:
        """Say what the watcher got wrong; None if it was right."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not terminal.is_closed and time.monotonic() < deadline:
            if terminal.step(0.05).is_waiting:
                return (
                    f"claimed instead of ending: {terminal.verdict}, output "
                    f"{bytes(terminal.output[-200:])!r}"
                )
        if not terminal.is_closed:
            return f"did not end: {terminal.verdict}"
        status = terminal.exit_status()
        return f"ended with {status}" if self.status is not None and status != self.status else None


@dataclass(frozen=True)
class Scenario:
    """A program and its steps in order.

    ``{home}`` in an argument stands for the home directory that the program is given.
    """

    name: str
    argv: tuple[str, ...]
    steps: tuple[Waits | Works | Ends, ...]
    needs: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)

    def play(self, home: str) -> str | None:
        """Run the program in this process; return what was wrong, or None."""
        argv = [argument.replace("{home}", home) for argument in self.argv]
        with BareTerminal(argv, env={**self.env, "HOME": home}, cwd=home) as terminal:
            for step in self.steps:
                problem = step.check(terminal)
                if problem:
                    return problem
        return None


def as_user(account: Account, play: Callable[[], Any]) -> Any:
    """Run ``play`` in a fork that has become ``account`` for good, and return its result.

    A fork is used because an ordinary user may not be able to execute this interpreter.
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
