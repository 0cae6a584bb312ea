"""The memory of the last prompt at which a process took lines."""

from controller_client.protocol.messages import PromptKind
from controller_client.terminal_state.prompt.text import reads_like_shell


class PromptMemory:
    """The last prompt for lines, and the shell that showed a prompt of its own."""

    def __init__(self) -> None:
        self._pid = 0
        self._kind: PromptKind = "line"
        self._text = ""
        self._shell = 0
        self._is_answered = False

    def on_line(self) -> None:
        """Take an input that completed a line: a shell may read for a command of its own now."""
        self._is_answered = True

    def on_claim(self, pid: int, kind: PromptKind, line: str) -> None:
        """Take a claim: process ``pid`` waits with ``line`` left of the cursor."""
        if kind not in {"line", "shell"}:
            return
        if self.continued(pid, line) is None:
            self._pid, self._kind, self._text = pid, kind, line.rstrip()
        if kind == "shell" and reads_like_shell(line):
            self._shell, self._is_answered = pid, False

    def continued(self, pid: int, line: str) -> PromptKind | None:
        """Return the kind of the last prompt if ``line`` is that prompt and input behind it."""
        is_same = pid > 0 and pid == self._pid and self._text and line.startswith(self._text)
        return self._kind if is_same else None

    def has_answered_shell(self, pid: int) -> bool:
        """Return whether a line was typed at a shell's own prompt of this process."""
        return self._is_answered and pid > 0 and pid == self._shell
