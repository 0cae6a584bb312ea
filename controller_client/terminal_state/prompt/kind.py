"""The kind of input that a waiting program wants."""

from collections.abc import Callable
from typing import Final, NamedTuple

from controller_client.protocol.messages import PromptKind
from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.prompt.output_modes import OutputModes
from controller_client.terminal_state.prompt.shell_arguments import (
    is_shell_of_terminal,
    may_be_shell,
)
from controller_client.terminal_state.prompt.text import (
    Likeness,
    asks_for_one_key,
    asks_for_secret,
    asks_surely_for_key,
    likeness,
    reads_like_shell,
)

PAGERS: Final = frozenset({"less", "more", "most", "pager", "lv"})
"""Programs in which each key is a command, whatever text is left of the cursor."""


class Known(NamedTuple):
    """Facts from earlier prompts of the same process."""

    is_echoed: bool = False
    """At this same prompt, a line editor showed the input before."""
    continued: PromptKind | None = None
    """The kind of the last prompt, if its text stands left of the cursor with input behind it."""
    has_answered_shell: bool = False
    """The process is a shell, and a line was typed at its own prompt."""
    draws_for_others: bool = False
    """The process is a multiplexer: its full screen shows other programs, keys go to it first."""


NOTHING_KNOWN: Final = Known()


def prompt_kind(
    flags: Flags | None,
    modes: OutputModes,
    comm: str,
    words: Callable[[], list[str]],
    known: Known = NOTHING_KNOWN,
) -> PromptKind:
    """Return the kind by the terminal's modes first, the program second, the text last.

    ``flags`` is None when the terminal is out of reach. ``words`` returns the command line of the
    program, which is only read where its name ``comm`` may be that of a shell.

    ``secret`` is a warning that nobody should see or keep the answer. Text can raise the warning,
    and only ``known.is_echoed`` takes it back. Whether a stored secret may be typed is decided
    elsewhere, by flags alone.
    """
    if flags is not None and flags.is_secret:
        return "secret"
    if flags is None:
        return "screen" if modes.is_alternate_screen else _line_kind(modes)
    # Line mode and shells come before the alternate screen: a killed program leaves that screen on
    # for the shell and all later programs.
    is_shell = _is_shell(comm, words)
    if flags.is_canonical:
        return "shell" if is_shell and reads_like_shell(modes.line) else _line_kind(modes)
    if is_shell:
        return _shell_kind(flags, modes, known)
    asks_line = not known.draws_for_others and _asks_line_by_line(modes)
    if modes.is_alternate_screen and not asks_line:
        return "secret" if _is_form_for_secret(modes) else "screen"
    return "key" if comm in PAGERS else _raw_kind(flags, modes, known)


def _line_kind(modes: OutputModes) -> PromptKind:
    return "secret" if asks_for_secret(modes.line) else "line"


def _shell_kind(flags: Flags, modes: OutputModes, known: Known) -> PromptKind:
    # A shell that shows no shell prompt, and edits no line or was given a command, runs its own
    # ``read``: of a line, of a key, or of a hidden line.
    if reads_like_shell(modes.line) or known.continued == "shell":
        return "shell"
    if asks_for_secret(modes.line):
        return "secret"
    if asks_surely_for_key(modes.line):
        return "key"
    is_own_read = known.has_answered_shell or (
        modes.knows_bracketed_paste and not modes.is_bracketed_paste
    )
    return _raw_kind(flags, modes, known) if is_own_read else "shell"


def _asks_line_by_line(modes: OutputModes) -> bool:
    # Some editors (ex) ask for lines on the alternate screen, at its end.
    return (
        modes.is_bracketed_paste
        and not (modes.is_cursor_hidden or modes.is_drawn_on_many_rows)
        and likeness(modes.line) is Likeness.PROMPT
    )


def _is_form_for_secret(modes: OutputModes) -> bool:
    # The cursor of a form stands in a frame. Frames are looked for first: drawing a full screen
    # takes a while.
    return (
        modes.has_frames
        and not modes.is_cursor_hidden
        and modes.line.lstrip().startswith("\u2502")
        and asks_for_secret(modes.question)
    )


def _raw_kind(flags: Flags, modes: OutputModes, known: Known) -> PromptKind:
    line = modes.line
    is_form = _is_form(flags, modes)
    has_entry = is_form or (modes.is_cursor_hidden and not line.strip())
    is_shown = known.is_echoed or flags.is_echoing
    if not is_shown and asks_for_secret(modes.question if has_entry else line):
        return "secret"
    if is_form:
        return "key" if asks_for_one_key(line) else "screen"
    if _is_menu(flags, modes):
        return "key"
    if flags.edits_lines or known.is_echoed:
        return "key" if asks_surely_for_key(line) else "line"
    if asks_for_one_key(line):
        return "key"
    # Echo without a line editor is left on for a read of single keys. ":" is the prompt of less,
    # also behind a relay that hides its name.
    is_question = likeness(line) is Likeness.PROMPT and line.strip() != ":"
    is_line = (
        modes.is_bracketed_paste
        or (is_question and not flags.is_echoing)
        or (flags.takes_every_key and _has_entry(modes))
    )
    return "line" if is_line or known.continued == "line" else "key"


def _is_form(flags: Flags, modes: OutputModes) -> bool:
    if not (modes.is_drawn or modes.is_drawn_on_many_rows):
        return False
    # A line editor may ask its question below a banner that was drawn.
    is_below_banner = flags.edits_lines and likeness(modes.line) is Likeness.PROMPT
    if modes.is_drawn_on_many_rows:
        return not is_below_banner
    return not modes.is_bracketed_paste and not is_below_banner


def _is_menu(flags: Flags, modes: OutputModes) -> bool:
    # A line editor shows the cursor where the line goes on, and leaves the mouse to the terminal.
    is_list = modes.is_cursor_hidden and not modes.line.strip()
    return modes.has_menu or (is_list and (flags.edits_lines or modes.takes_mouse))


def _has_entry(modes: OutputModes) -> bool:
    # A prompt of any text leaves a blank before the entry; a program may draw the cursor there.
    is_prompt = modes.line.endswith(" ") and bool(modes.line.strip())
    return modes.has_drawn_cursor or (is_prompt and not modes.is_cursor_hidden)


def _is_shell(comm: str, words: Callable[[], list[str]]) -> bool:
    # With a script or -c a question comes from the script, and is no prompt of the shell.
    return may_be_shell(comm) and is_shell_of_terminal(comm, words() or [comm])
