"""``manage.py take_over SESSION``: a person types into a session for a while.

Until the session is handed back, input of its callers is refused with SESSION_TAKEN_OVER. They see
afterwards what happened.
"""

import getpass
import signal
import sys
from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.base import ControllerActionError, InvalidInput
from projects.errors.inputs import InputRefused
from projects.errors.uncertain import InputUnconfirmed
from projects.management.naming import actor, unknown
from projects.management.refusals import RefusingCommand
from projects.models import CommandSession
from projects.sessions.answers.results import InteractiveOutputResult
from projects.sessions.selectors import ACTIVE

KEYS = "/keys"


class Command(RefusingCommand):
    help = (
        "Take a session over, type lines (or '/keys ctrl-c'), and hand it back at the end of "
        "input (Ctrl-D), on SIGTERM, and when the terminal is gone"
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("session", help="id of the session")
        parser.add_argument(
            "--note",
            default=None,
            help="message to the session's caller (default: asked for on a terminal)",
        )

    def handle(self, *, session: str, note: str | None, **_options: Any) -> None:
        _Keyboard(_session(session), self.stdout).hold(note)


class _Keyboard:
    def __init__(self, session: CommandSession, out: Any) -> None:
        self._ids = (session.project_id, session.pk)
        self._operator = actor()
        self._out = out
        self._seen = max(0, session.stdout_next_offset - 2000)
        self._is_asked = sys.stdin.isatty()
        self._is_reading = self._is_dismissed = False

    def hold(self, note: str | None) -> None:
        """Take the session over, type each line of standard input into it, and hand it back."""
        for number in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._dismiss)
        clock = async_to_sync(services.session_take_over)(*self._ids, operator=self._operator)
        try:
            self._out.write(clock)
            result = self._show(self._typed("", ()))
            while result.is_alive and (line := self._line(result)) is not None:
                result = self._obey(result, line)
        finally:
            self._hand_back(note)

    def _dismiss(self, *_signal: object) -> None:
        # Nobody is at the terminal any more, which is the same as the end of input.
        self._is_dismissed, self._is_asked = True, False
        if self._is_reading:
            raise EOFError

    def _obey(self, before: InteractiveOutputResult, line: str) -> InteractiveOutputResult:
        """Types a line, or presses the keys that it names."""
        if line != KEYS and not line.startswith(f"{KEYS} "):
            return self._turn(before, line + "\n", ())
        if keys := line.removeprefix(KEYS).split():
            return self._turn(before, "", keys)
        self._out.write(f"nothing was typed: name keys, such as {KEYS} ctrl-c")
        return before

    def _turn(
        self, before: InteractiveOutputResult, text: str, keys: Any
    ) -> InteractiveOutputResult:
        try:
            return self._show(self._typed(text, keys))
        except (InvalidInput, InputRefused, InputUnconfirmed) as error:
            # A wrong key name must not end the takeover.
            self._out.write(error.line())
            return before

    def _typed(self, text: str, keys: Any) -> InteractiveOutputResult:
        caller = Caller(
            project_id=self._ids[0],
            label=self._operator,
            scopes=frozenset({"session:input", "session:read", "shell:any"}),
        )
        is_poll = not (text or keys)
        wait_seconds = 0.0 if is_poll else 5.0
        return async_to_sync(services.controller_send_input)(
            *self._ids,
            text,
            keys=keys,
            caller=caller,
            wait_seconds=wait_seconds,
            is_showing=False,
            has_keyboard=True,
        )

    def _show(self, result: InteractiveOutputResult) -> InteractiveOutputResult:
        page = async_to_sync(services.session_read_output)(*self._ids, offset=self._seen)
        self._seen = page.next_offset
        self._out.write(page.output)
        state = f"waits for {result.prompt.kind}" if result.prompt else result.state
        self._out.write(f"[{state}]")
        return result

    def _line(self, result: InteractiveOutputResult) -> str | None:
        """The next line, typed hidden if the program reads it hidden; None at the end of input."""
        if self._is_asked and result.prompt is not None and result.prompt.kind == "secret":
            return self._read(getpass.getpass, "hidden> ")
        return self._read(input, "> " if self._is_asked else "")

    def _read(self, reader: Callable[[str], str], question: str) -> str | None:
        try:
            self._is_reading = True
            return None if self._is_dismissed else reader(question)
        except (EOFError, KeyboardInterrupt):
            return None
        finally:
            self._is_reading = False

    def _hand_back(self, note: str | None) -> None:
        if note is None and self._is_asked:
            note = self._read(input, "\nnote for the session's caller: ")
        try:
            async_to_sync(services.session_hand_back)(
                *self._ids, operator=self._operator, note=note or ""
            )
        except ControllerActionError as error:
            # The program has ended, so there is nothing to hand back.
            self._out.write(f"{error}")


def _session(text: str) -> CommandSession:
    try:
        return CommandSession.objects.get(id=UUID(text))
    except (ValueError, CommandSession.DoesNotExist):
        active = (
            CommandSession.objects.filter(state__in=ACTIVE, io_mode="pty")
            .order_by("-created_at")
            .values_list("id", flat=True)
        )
        remedy = "The admin lists all sessions"
        raise unknown(
            "active session", text, active, code="SESSION_NOT_FOUND", remedy=remedy
        ) from None
