"""Which inputs of one session are command lines for a shell, and so for the policy to judge.

A session is such a shell if its program is one, or once its terminal was seen at a shell's prompt.
"""

import msgspec

from controller_client.command_policy.programs import is_shell
from controller_client.host_policy import HostPolicy
from controller_client.protocol.messages import ProjectRules, RunCommand, SendInput, StartInteractiveCmd, TerminalReport
from controller_client.session_directory import SessionDirectory


class InputGuard:
    """Stands before one session's holder."""

    def __init__(self, directory: SessionDirectory, policy: HostPolicy) -> None:
        self._directory = directory
        self._policy = policy
        self._rules: ProjectRules | None = None
        self._takes_lines = False
        self._is_hidden = False

    def on_start(self, start: StartInteractiveCmd | RunCommand) -> None:
        """The session's start, as it was admitted."""
        self._rules = start.rules
        self._takes_lines |= _is_shell(start)

    def on_report(self, report: TerminalReport | None) -> None:
        """What the session's terminal waits for."""
        if report is not None:
            self._is_hidden = report.kind == "secret"
            self._takes_lines |= report.kind == "shell"

    def judged(self, command: SendInput) -> SendInput:
        """The input as its holder is to take it. What a server says of its own inputs does not count."""
        if (failure := self._policy.stopped) is not None:
            return msgspec.structs.replace(command, refused=failure)
        if self._rules is None:
            # The daemon that started the session was another.
            start = self._directory.read_start()
            self._rules = ProjectRules()
            if start is not None:
                self.on_start(start)
        if self._takes_lines and self._rules is not None:
            return self._policy.judge(command, self._rules, is_hidden=self._is_hidden)
        if command.refused is None and not command.is_line_checked:
            return command
        return msgspec.structs.replace(command, refused=None, is_line_checked=False)


def _is_shell(start: StartInteractiveCmd | RunCommand) -> bool:
    if start.admission is not None and start.admission.program is not None:
        return start.admission.takes_lines
    words = start.argv or (start.command or "").split()
    return bool(words) and is_shell(words[0])
