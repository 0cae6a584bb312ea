"""The tools that the present caller is shown, and texts that name no others.

Every text that advises a caller is written for one that has all tools, as sentences that end in a
full stop. What names a tool that this caller is not shown is left out; a sentence behind ``||`` is
said in place of the one before it when that was left out. Nothing here knows the tools themselves,
so that errors and hints can use it. Pure but for the caller's own names in the context.
"""

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

TOOL_NAMES: Final = frozenset(
    {
        "execute_command",
        "get_session",
        "get_session_updates",
        "list_controllers",
        "list_session_monitors",
        "list_sessions",
        "query_command_status",
        "read_output",
        "read_session_output",
        "resize_session",
        "run_command",
        "search_session_output",
        "send_command_input",
        "start_command",
        "start_interactive_command",
        "start_session_monitor",
        "stop_command",
        "stop_session_monitor",
        "write_input",
    }
)
"""Names of all tools; a test holds them against the registry."""

_NAMED: Final = re.compile(rf"\b(?:{'|'.join(sorted(TOOL_NAMES))})\b")
_BETWEEN_SENTENCES: Final = re.compile(r"(?<=\.) +(?=\S)")
_ELSE: Final = "|| "

_shown: ContextVar[frozenset[str]] = ContextVar("_shown", default=TOOL_NAMES)


@contextmanager
def showing(names: Collection[str]) -> Iterator[None]:
    """Texts made in the block are for a caller that is shown the tools of these ``names``.

    This holds in the database threads that the block uses, too.
    """
    token = _shown.set(frozenset(names))
    try:
        yield
    finally:
        _shown.reset(token)


def tools_named(text: str) -> frozenset[str]:
    """Names of the tools that ``text`` mentions."""
    return frozenset(_NAMED.findall(text))


def fitting(text: str, names: Collection[str] | None = None) -> str:
    """``text`` without the sentences that name other tools than ``names``.

    ``names`` None: the tools of the present caller.
    """
    shown = _shown.get() if names is None else names
    said: list[str] = []
    is_said = True
    for sentence in _BETWEEN_SENTENCES.split(text):
        if sentence.startswith(_ELSE) and is_said:
            continue
        is_said = tools_named(sentence) <= frozenset(shown)
        if is_said:
            said.append(sentence.removeprefix(_ELSE))
    return " ".join(said)


def said(template: str, /, **values: object) -> str:
    """The sentences of ``template`` that fit the present caller, with ``values`` filled in.

    The values may hold any words.
    """
    return fitting(template).format(**values)
