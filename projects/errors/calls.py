"""Errors of a call itself: its tool, its arguments, its ``request_id``."""

from collections.abc import Sequence

from controller_client.protocol.sentences import sentences
from projects.errors.base import Conflict, InvalidInput


class InvalidArgument(InvalidInput):
    """One or more arguments have a wrong type or value.

    ``problems`` has one text per argument, ``name: what is wrong``, which never repeats the value.
    """

    def __init__(self, problems: Sequence[str], hint: str = "") -> None:
        self.problems = tuple(problems)
        self.hint = sentences(self.hint, hint)
        super().__init__("invalid arguments: " + "; ".join(self.problems))


class UnknownArgument(InvalidInput):
    """The tool has no such argument."""

    code = "UNKNOWN_ARGUMENT"

    def __init__(self, tool: str, unknown: Sequence[str], known: Sequence[str]) -> None:
        self.unknown, self.known = tuple(unknown), tuple(known)
        self.hint = f"Arguments of {tool}: {', '.join(known) or 'none'}."
        super().__init__(f"{tool} has no argument {', '.join(repr(name) for name in unknown)}")


class UnknownTool(InvalidInput):
    """No tool has this name."""

    code = "UNKNOWN_TOOL"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Tools: {', '.join(known)}."
        super().__init__(f"there is no tool {name!r}")


class UnknownToolset(InvalidInput):
    """No set of tools has this name."""

    code = "UNKNOWN_TOOLSET"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Toolsets: {', '.join(known)}. Leave toolsets out for everything."
        super().__init__(f"there is no toolset {name!r}")


class RequestNotUnderstood(InvalidInput):
    """The request as a whole is none of the protocol, so no tool was looked for."""

    code = "REQUEST_NOT_UNDERSTOOD"
    hint = (
        "Nothing was done. Send one request of JSON-RPC 2.0, as JSON in UTF-8 without half a "
        "surrogate pair, with the headers that MCP asks for, a method that this server has, and "
        "its params: arguments of tools/call is an object, not a text."
    )


class InvalidPattern(InvalidInput):
    """An argument is not a usable regular expression."""

    code = "INVALID_PATTERN"
    hint = (
        "Use RE2 syntax: no look-around and no back-references. Put \\ before a bracket or another "
        "sign that stands for itself, as in \\(."
    )

    def __init__(self, reason: str, argument: str = "wait_for", *, hint: str = hint) -> None:
        self.reason, self.hint = reason, hint
        super().__init__(f"{argument} is not a valid regular expression: {reason}")


class RequestIdReused(Conflict):
    """The ``request_id`` was used before, for a call with different arguments."""

    code = "REQUEST_ID_REUSED"
    hint = "Use a fresh uuid for a new action; repeat a request_id only to retry the same one."

    def __init__(self) -> None:
        super().__init__("this request_id was already used for a different call")
