"""Programs with the truth about them: when they wait for input, when they work, how they end."""

import ctypes  # noqa: F401 - relays need it in a fork that may not read the interpreter's library
import json
import os
import re
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, Literal

from controller_client.protocol.messages import Evidence
from controller_client.system.users.two_users import ProgramUser, act_as
from tests.support.accounts import Account
from tests.support.hosts.bare_terminal import BareTerminal

PATIENCE_SECONDS = 20.0
CLAIM_SECONDS = 3.0
"""The time in which a claim is made, even if the program came to its prompt very late."""
Fault = Literal["", "early", "missed", "wrong kind", "wrong text", "wrong evidence", "wrong end"]


@dataclass(frozen=True)
class Judgement:
    """The watcher's answer to one step: right without a fault, else ``said`` tells what is wrong.

    ``evidence`` is that of the claim, or of the early claim.
    """

    fault: Fault = ""
    said: str = ""
    evidence: Evidence | None = None


def _shown(terminal: BareTerminal) -> str:
    return terminal.output.decode("utf-8", "replace")


def _early(terminal: BareTerminal, said: str) -> Judgement:
    said = f"{said}: {terminal.verdict}, output {_shown(terminal)[-200:]!r}"
    return Judgement("early", said, terminal.verdict.evidence)


def _leave_the_claim(terminal: BareTerminal, deadline: float) -> None:
    # A claim that was too early stands until the program goes on.
    while terminal.step(0.05).is_waiting and time.monotonic() < deadline:
        if terminal.is_closed:
            break


@dataclass(frozen=True)
class Waits:
    """The step in which the program waits for input, and the test then types ``send``.

    The wait begins once ``text`` (a regular expression) has appeared. Its kind is one of ``kinds``,
    and its evidence one of ``evidence``, each separated by ``|``. The text that is told ends in
    ``prompt`` unless that is None.
    """

    text: str
    kinds: str
    send: bytes | None = None
    evidence: str = "kernel"
    prompt: str | None = None

    def judge(self, terminal: BareTerminal) -> Judgement:
        """Compare the watcher with the truth, and then type the input."""
        early, deadline = None, time.monotonic() + PATIENCE_SECONDS
        while not self._has_begun(terminal) and not terminal.is_closed:
            left = deadline - time.monotonic()
            if left <= 0 or not terminal.wait(left).is_waiting or self._has_begun(terminal):
                break
            early = early or _early(terminal, f"claimed before {self.prompt or self.text!r}")
            _leave_the_claim(terminal, deadline)
        judgement = early or self._judge_claim(terminal, deadline)
        if self.send is not None and not terminal.is_closed:
            terminal.send(self.send)
        return judgement

    def _has_begun(self, terminal: BareTerminal) -> bool:
        return re.search(self.text, _shown(terminal), re.DOTALL) is not None

    def _judge_claim(self, terminal: BareTerminal, deadline: float) -> Judgement:
        verdict = terminal.wait(max(CLAIM_SECONDS, deadline - time.monotonic()))
        at = f"at {self.prompt or self.text!r}: {verdict}"
        if not verdict.is_waiting:
            return Judgement("missed", f"not seen waiting {at}, output {_shown(terminal)[-300:]!r}")
        if verdict.kind not in self.kinds.split("|"):
            fault: Fault = "wrong kind"
            said = f"kind {verdict.kind} instead of {self.kinds} {at}"
        elif not verdict.prompt.rstrip().endswith((self.prompt or "").rstrip()):
            fault, said = "wrong text", f"{verdict.prompt!r} instead of {self.prompt!r} {at}"
        elif verdict.evidence not in self.evidence.split("|"):
            fault = "wrong evidence"
            said = f"evidence {verdict.evidence} instead of {self.evidence} {at}"
        else:
            fault, said = "", ""
        return Judgement(fault, said, verdict.evidence)


@dataclass(frozen=True)
class Works:
    """The step in which the program works for ``seconds``, whatever it prints.

    The step begins once ``after`` has appeared. Any claim that the program waits is wrong.
    """

    seconds: float
    after: str = ""

    def judge(self, terminal: BareTerminal) -> Judgement:
        """Compare the watcher with the truth."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not re.search(self.after, _shown(terminal)):
            if terminal.step(0.05).is_waiting:
                return _early(terminal, f"claimed before {self.after!r}")
            if terminal.is_closed or time.monotonic() > deadline:
                return Judgement("wrong end", f"never printed {self.after!r}: {_shown(terminal)!r}")
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0 and not terminal.is_closed:
            if terminal.step(left).is_waiting:
                return _early(terminal, "claimed while it worked")
        return Judgement()


@dataclass(frozen=True)
class Ends:
    """The step in which the program ends, with ``status`` unless that is None."""

    status: int | None = 0

    def judge(self, terminal: BareTerminal) -> Judgement:
        """Compare the watcher with the truth."""
        early, deadline = None, time.monotonic() + PATIENCE_SECONDS
        while not terminal.is_closed and time.monotonic() < deadline:
            if terminal.step(0.05).is_waiting and early is None:
                early = _early(terminal, "claimed instead of ending")
        if early is not None:
            return early
        if not terminal.is_closed:
            shown = _shown(terminal)[-300:]
            return Judgement("wrong end", f"did not end: {terminal.verdict}, output {shown!r}")
        status = terminal.exit_status()
        is_right = self.status is None or status == self.status
        return Judgement() if is_right else Judgement("wrong end", f"ended with {status}")


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

    def judgements(self, home: str) -> Iterator[Judgement]:
        """Run the program in this process, and judge step after step."""
        argv = [argument.replace("{home}", home) for argument in self.argv]
        with BareTerminal(argv, env={**self.env, "HOME": home}, cwd=home) as terminal:
            for step in self.steps:
                yield step.judge(terminal)

    def play(self, home: str) -> str | None:
        """Run the program up to the first fault; return what was wrong, or None."""
        with closing(self.judgements(home)) as judgements:
            return next((judgement.said for judgement in judgements if judgement.fault), None)


def as_user(account: Account, play: Callable[[], Any], keeper: Account | None = None) -> Any:
    """Run ``play`` in a fork that has become ``account`` for good, and return its result.

    With a ``keeper`` the fork is as a holder of two users is: its own user is the keeper, it acts
    as ``account``, and only the programs that it starts are ``account`` for good. A fork is used
    because an ordinary user may not be able to execute this interpreter.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _play_and_exit(account, keeper, play, writer)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(pid, 0)
    outcome = json.loads(answer)
    assert "error" not in outcome, outcome["error"]
    return outcome["value"]


def _play_and_exit(
    account: Account, keeper: Account | None, play: Callable[[], Any], writer: int
) -> None:
    try:
        _become(account, keeper)
        os.environ.update(HOME=str(account.home), USER=account.name, LOGNAME=account.name)
        answer = {"value": play()}
    except BaseException:  # noqa: BLE001 - a fork of pytest must end here, whatever happened
        answer = {"error": traceback.format_exc()}
    os.write(writer, json.dumps(answer).encode())
    sys.stdout.flush()
    os._exit(0)


def _become(account: Account, keeper: Account | None) -> None:
    if keeper is None:
        os.initgroups(account.name, account.gid)
        os.setresgid(account.gid, account.gid, account.gid)
        os.setresuid(account.uid, account.uid, account.uid)
        return
    # The effective user stays root for the moment: that is the right to act as another.
    os.setresgid(keeper.gid, -1, -1)
    os.setresuid(keeper.uid, -1, -1)
    act_as(ProgramUser.named(account.name))
