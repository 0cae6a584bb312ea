"""Which kind of input a waiting program wants."""

from typing import Final

from controller_client.protocol.messages import PromptKind
from controller_client.terminal_state.output_modes import OutputModes
from controller_client.terminal_state.proc_file import read_once
from controller_client.terminal_state.prompt_text import Likeness, asks_for_one_key, asks_for_secret, likeness, reads_like_shell
from controller_client.terminal_state.terminal_device import Flags

_SHELLS: Final = "bash rbash zsh rzsh fish dash sh ksh ksh93 rksh mksh rmksh lksh yash tcsh csh ash rc es nu xonsh elvish pwsh"
SHELLS: Final = frozenset(_SHELLS.split())
PAGERS: Final = frozenset({"less", "more", "most", "pager", "lv"})
"""Each key is a command, whatever stands at the end of the page."""


def prompt_kind(flags: Flags | None, modes: OutputModes, comm: str, pid: int) -> PromptKind:
    """Kind from the terminal's modes first, the program second, the text last. ``flags`` is None when out of reach."""
    if flags is not None and flags.is_secret:
        return "secret"
    if flags is None:
        return "screen" if modes.is_alternate_screen else "secret" if asks_for_secret(modes.line) else "line"
    # These two before the alternate screen: a program that was killed leaves that on for the shell and everybody after it.
    is_shell = comm in SHELLS and not _runs_script(pid)
    if flags.is_canonical:
        return "shell" if is_shell and reads_like_shell(modes.line) else "line"
    if is_shell:
        return _shell_kind(flags, modes)
    if modes.is_alternate_screen:
        return "screen"
    return "key" if comm in PAGERS else _raw_kind(flags, modes)


def _shell_kind(flags: Flags, modes: OutputModes) -> PromptKind:
    """A shell's own read, of a key or a hidden line, is told by what it does not do: edit a line, or look like a prompt."""
    if reads_like_shell(modes.line):
        return "shell"
    if asks_for_secret(modes.line) and not flags.is_echoing:
        return "secret"
    return _raw_kind(flags, modes) if modes.knows_bracketed_paste and not modes.is_bracketed_paste else "shell"


def _raw_kind(flags: Flags, modes: OutputModes) -> PromptKind:
    if asks_for_secret(modes.line) and not flags.is_echoing:
        return "secret"
    if modes.is_drawn and not modes.is_bracketed_paste and not asks_for_one_key(modes.line):
        return "screen"
    is_line = modes.is_bracketed_paste or likeness(modes.line) is Likeness.PROMPT
    return "line" if is_line and not _reads_like_key(modes.line) else "key"


def _reads_like_key(line: str) -> bool:
    # The second is less behind something that hides who it is.
    return asks_for_one_key(line) or line == ":"


def _runs_script(pid: int) -> bool:
    """Whether a shell was given something to run: what it then asks is its script's question, not a shell's prompt."""
    try:
        arguments = read_once(f"/proc/{pid}/cmdline").split(b"\0")[1:-1]
    except OSError:
        return False
    return any(argument == b"-c" or not argument.startswith(b"-") for argument in arguments)
