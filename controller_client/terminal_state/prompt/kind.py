"""The kind of input that a waiting program wants."""

from typing import Final

from controller_client.protocol.messages import PromptKind
from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.proc_file import read_once
from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.prompt.output_modes import OutputModes
from controller_client.terminal_state.prompt.text import (
    Likeness,
    asks_for_one_key,
    asks_for_secret,
    likeness,
    reads_like_shell,
)

_SHELLS: Final = (
    "bash rbash zsh rzsh fish dash sh ksh ksh93 rksh mksh rmksh lksh yash tcsh csh ash rc es "
    "nu xonsh elvish pwsh"
)
SHELLS: Final = frozenset(_SHELLS.split())
PAGERS: Final = frozenset({"less", "more", "most", "pager", "lv"})
"""Programs in which each key is a command, whatever text is left of the cursor."""


def prompt_kind(
    flags: Flags | None, modes: OutputModes, comm: str, pid: int, *, is_echoed: bool = False
) -> PromptKind:
    """Return the kind by the terminal's modes first, the program second, the text last.

    ``flags`` is None when the terminal is out of reach. ``is_echoed``: at this same prompt, a line
    editor showed the input before.

    ``secret`` is a warning that nobody should see or keep the answer. Text can raise the warning,
    and only ``is_echoed`` takes it back. Whether a stored secret may be typed is decided elsewhere,
    by flags alone.
    """
    if flags is not None and flags.is_secret:
        return "secret"
    if flags is None:
        return "screen" if modes.is_alternate_screen else _line_kind(modes)
    # Line mode and shells come before the alternate screen: a killed program leaves that screen on
    # for the shell and all later programs.
    is_shell = comm in SHELLS and not _runs_script(pid)
    if flags.is_canonical:
        return "shell" if is_shell and reads_like_shell(modes.line) else _line_kind(modes)
    if is_shell:
        return _shell_kind(flags, modes)
    if modes.is_alternate_screen:
        return "screen"
    return "key" if comm in PAGERS else _raw_kind(flags, modes, is_echoed=is_echoed)


def _line_kind(modes: OutputModes) -> PromptKind:
    return "secret" if asks_for_secret(modes.line) else "line"


def _shell_kind(flags: Flags, modes: OutputModes) -> PromptKind:
    # A shell that edits no line, and shows no shell prompt, runs its own ``read``: of a key, or of
    # a hidden line.
    if reads_like_shell(modes.line):
        return "shell"
    if asks_for_secret(modes.line):
        return "secret"
    is_own_read = modes.knows_bracketed_paste and not modes.is_bracketed_paste
    return _raw_kind(flags, modes) if is_own_read else "shell"


def _raw_kind(flags: Flags, modes: OutputModes, *, is_echoed: bool = False) -> PromptKind:
    line = modes.line
    is_form = modes.is_drawn and not modes.is_bracketed_paste
    is_shown = is_echoed or flags.is_echoing
    if not is_shown and asks_for_secret(modes.question if is_form else line):
        return "secret"
    if is_form and not asks_for_one_key(line):
        return "screen"
    is_line = modes.is_bracketed_paste or likeness(line) is Likeness.PROMPT
    # ":" is the prompt of less, also behind a relay that hides its name.
    return "line" if is_line and not asks_for_one_key(line) and line.strip() != ":" else "key"


def _runs_script(pid: int) -> bool:
    # With a script or -c a question comes from the script, and is no prompt of the shell.
    try:
        arguments = read_once(f"/proc/{pid}/cmdline").split(b"\0")[1:-1]
    except OSError as error:
        raise_shortage(error)
        return False
    return any(argument == b"-c" or not argument.startswith(b"-") for argument in arguments)
