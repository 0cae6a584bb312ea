"""``manage.py take_over``: a person at the keyboard of a session, for a while."""

import getpass
import sys
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from asgiref.sync import async_to_sync
from django.core.management.base import BaseCommand, CommandError

from projects import reading, services
from projects.authentication import Caller
from projects.errors import ControllerActionError
from projects.management.refusals import refusal
from projects.models import CommandSession
from projects.results import InteractiveOutputResult

KEYS = "/keys "


class Command(BaseCommand):
    """What callers of the session type meanwhile is refused with SESSION_TAKEN_OVER; they see what happened when it is handed back."""

    help = "Take a session over, type lines (or '/keys ctrl-c'), and hand it back at the end of input (Ctrl-D)"

    def add_arguments(self, parser: ArgumentParser) -> None:
        """SESSION, --note."""
        parser.add_argument("session", help="id of the session")
        parser.add_argument("--note", default=None, help="told to the session's caller; asked for if there is a terminal")

    def handle(self, *, session: str, note: str | None, **_options: Any) -> None:
        """Until the end of input, or of the program."""
        try:
            _Keyboard(_session(session), self.stdout).hold(note)
        except ControllerActionError as error:
            raise refusal(error) from None


class _Keyboard:
    """One takeover."""

    def __init__(self, session: CommandSession, out: Any) -> None:
        self._ids = (session.project_id, session.pk)
        self._operator = f"cli:{getpass.getuser()}"
        self._out = out
        self._seen = max(0, session.stdout_next_offset - 2000)
        self._is_asked = sys.stdin.isatty()

    def hold(self, note: str | None) -> None:
        """Takes over, types what is typed here, hands back."""
        async_to_sync(services.session_take_over)(*self._ids, operator=self._operator)
        try:
            result = self._show(self._typed("", ()))
            while result.is_alive and (line := self._line(result)) is not None:
                keys = line.removeprefix(KEYS).split() if line.startswith(KEYS) else ()
                result = self._show(self._typed("" if keys else line + "\n", keys))
        finally:
            self._hand_back(note)

    def _typed(self, text: str, keys: Any) -> InteractiveOutputResult:
        caller = Caller(project_id=self._ids[0], label=self._operator, scopes=frozenset({"session:input", "session:read", "shell:any"}))
        is_poll = not (text or keys)
        wait_seconds = 0.0 if is_poll else 5.0
        return async_to_sync(services.controller_send_input)(
            *self._ids, text, keys=keys, caller=caller, wait_seconds=wait_seconds, is_showing=False
        )

    def _show(self, result: InteractiveOutputResult) -> InteractiveOutputResult:
        """What is new on the terminal, and how things stand."""
        page = async_to_sync(reading.session_read_output)(*self._ids, offset=self._seen)
        self._seen = page.next_offset
        self._out.write(page.output)
        stands = f"waits for {result.prompt.kind}" if result.prompt else result.state
        self._out.write(f"[{stands}]")
        return result

    def _line(self, result: InteractiveOutputResult) -> str | None:
        """The next line; hidden where the program hides it. None at the end of input."""
        try:
            if self._is_asked and result.prompt is not None and result.prompt.kind == "secret":
                return getpass.getpass("hidden> ")
            return input("> " if self._is_asked else "")
        except (EOFError, KeyboardInterrupt):
            return None

    def _hand_back(self, note: str | None) -> None:
        if note is None and self._is_asked:
            try:
                note = input("\nnote for the session's caller: ")
            except (EOFError, KeyboardInterrupt):
                note = ""
        try:
            async_to_sync(services.session_hand_back)(*self._ids, operator=self._operator, note=note or "")
        except ControllerActionError as error:
            # The program ended meanwhile: there is nothing to hand back.
            self._out.write(f"{error}")


def _session(text: str) -> CommandSession:
    try:
        return CommandSession.objects.get(id=UUID(text))
    except (ValueError, CommandSession.DoesNotExist):
        raise CommandError(f"there is no session {text!r}") from None
