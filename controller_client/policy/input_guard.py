"""The guard of one session's inputs: those for a shell are command lines and are judged.

A session is a shell if its program is one, and from the moment on when its terminal is seen at a
shell's prompt. That is put on record, so that it holds under a later daemon as well.
"""

from collections.abc import Collection
from contextlib import suppress

import msgspec

from controller_client.command_policy.programs import is_shell
from controller_client.policy.host_policy import HostPolicy
from controller_client.protocol.messages import (
    Failure,
    ProjectRules,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
    TerminalReport,
)
from controller_client.protocol.values import PROVES_READERS
from controller_client.session_files.directory import SessionDirectory

_OLD_HOLDER = Failure(
    code="HOST_TOO_OLD",
    message=(
        "this session is held by an older version, which cannot prove who reads; start the "
        "program again"
    ),
)
_UNREADABLE = Failure(
    code="RULES_UNREADABLE", message="the host cannot read the rules of this session now"
)


class InputGuard:
    """The judge of every input before it is sent to the session's holder."""

    def __init__(self, directory: SessionDirectory, policy: HostPolicy) -> None:
        self._directory = directory
        self._policy = policy
        self._rules: ProjectRules | None = None
        self._start: StartInteractiveCmd | RunCommand | None = None
        self._takes_lines = False
        # None until a report came: nobody knows whether an input answers a hidden question.
        self._asks_secret: bool | None = None
        # The answer to a hidden question may come when the question is over.
        self._may_be_secret = False

    def on_start(self, start: StartInteractiveCmd | RunCommand) -> None:
        """Note the session's start, as it was admitted."""
        self._rules, self._start = start.rules, start
        self._takes_lines |= _is_shell(start)

    def on_report(self, report: TerminalReport | None) -> None:
        """Note what the session's terminal waits for."""
        if report is not None:
            self._asks_secret = report.kind == "secret"
            self._may_be_secret |= self._asks_secret
            if report.kind == "shell" and not self._takes_lines:
                self._takes_lines = True
                # Without the record a later daemon knows it from the next such prompt on.
                with suppress(OSError):
                    self._directory.note_shell()

    def judged(self, command: SendInput, holder_can: Collection[str]) -> SendInput:
        """Return the input for a holder with the capabilities ``holder_can``.

        A refusal is in it. A server's own verdict about its input does not count.
        """
        if (failure := self._policy.stopped) is not None:
            return msgspec.structs.replace(command, refused=failure)
        judged = self._judged_as_line(command)
        if command.secret is None or judged.refused is _UNREADABLE:
            return judged
        is_proof_needed = bool(command.secret_programs) or not command.may_echo
        if is_proof_needed and PROVES_READERS not in holder_can:
            return msgspec.structs.replace(judged, refused=_OLD_HOLDER)
        return self._policy.judge_secret(judged, self._start)

    def _judged_as_line(self, command: SendInput) -> SendInput:
        if self._rules is None:
            # An earlier daemon started the session.
            try:
                start = self._directory.read_start()
                self._takes_lines |= self._directory.was_shell()
            except (OSError, MemoryError):
                # Without its rules nobody knows whether the input is allowed. The next input tries
                # to read them again.
                return msgspec.structs.replace(command, refused=_UNREADABLE)
            self._rules = ProjectRules()
            if start is not None:
                self.on_start(start)
        if self._takes_lines:
            try:
                is_hidden = self._may_be_secret or self._asks_secret is not False
                judged = self._policy.judge(command, self._rules, is_hidden=is_hidden)
            except (OSError, MemoryError):
                # No descriptor is left, say, to look at a program of the line.
                return msgspec.structs.replace(command, refused=_UNREADABLE)
            # Not before: an input that could not be judged is sent again.
            self._may_be_secret = bool(self._asks_secret)
            return judged
        return msgspec.structs.replace(command, refused=None, is_line_checked=False)


def _is_shell(start: StartInteractiveCmd | RunCommand) -> bool:
    if start.admission is not None and start.admission.program is not None:
        return start.admission.takes_lines
    words = start.argv or (start.command or "").split()
    return bool(words) and is_shell(words[0])
