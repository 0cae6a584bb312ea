"""The parts of ``docs/reference/protocol.md`` on a message that follow from the code."""

import types
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from controller_client.protocol import limits, messages
from controller_client.protocol.messages import (
    FromController,
    FromHolder,
    FromServer,
    Message,
    ToHolder,
)
from controller_client.protocol.values import PaceSeconds, WallSeconds, WindowBytes

_NAMES = {int: "integer", str: "string", bytes: "base64", float: "number", bool: "boolean"}
_ALIASES = {
    messages.Count: "count",
    messages.Pid: "pid",
    messages.ExitCode: "exit code",
    messages.Seconds: "number",
    WallSeconds: "number",
    PaceSeconds: "number",
    WindowBytes: "integer",
}
ENVELOPE = {field.name for field in msgspec.structs.fields(Message)}


def directions(kind: type[Message]) -> str:
    """Who sends it to whom: c controller, s server, d daemon, h holder."""
    unions = {"c → s": FromController, "s → c": FromServer, "h → d": FromHolder, "d → h": ToHolder}
    return ", ".join(name for name, union in unions.items() if kind in get_args(union))


def type_text(hint: Any) -> str:
    """A field's type in words."""
    if hint in _ALIASES:
        return _ALIASES[hint]
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return " \\| ".join(f"`{value}`" for value in arguments)
    if origin in {types.UnionType, Union}:
        return " or ".join(
            "null" if each is types.NoneType else type_text(each) for each in arguments
        )
    if origin is list:
        return f"list of {type_text(arguments[0])}"
    if origin is dict:
        return "map of " + " to ".join(map(type_text, arguments))
    return _NAMES.get(hint) or f"`{hint.__name__}`"


def default_text(field: msgspec.structs.FieldInfo) -> str:
    """What holds if the field is left out."""
    if field.required:
        return "required"
    if field.default_factory is not msgspec.NODEFAULT:
        return (
            "fresh"
            if field.name == "id"
            else f"`{msgspec.json.encode(field.default_factory()).decode()}`"
        )
    return f"`{msgspec.json.encode(field.default).decode()}`"


def field_rows(kind: type[msgspec.Struct]) -> dict[str, str]:
    """The beginning of each field's row, by name; the envelope has a table of its own."""
    hints = get_type_hints(kind, include_extras=True)
    inherited = ENVELOPE if issubclass(kind, Message) and kind is not Message else set()
    return {
        field.name: f"| `{field.name}` | {type_text(hints[field.name])} | {default_text(field)} | "
        for field in msgspec.structs.fields(kind)
        if field.name not in inherited
    }


def close_code_rows() -> dict[str, str]:
    """The beginning of each close code's row, by name."""
    codes = {name: value for name, value in vars(limits.CloseCode).items() if name.isupper()}
    return {name: f"| {value} | `{name}` | " for name, value in codes.items()}


def limit_rows() -> dict[str, str]:
    """The beginning of each limit's row, by name."""
    values = {name: value for name, value in vars(limits).items() if name.isupper()}
    return {name: f"| `{name}` | {_number(value)} | " for name, value in values.items()}


def _number(value: float | tuple[int, ...]) -> str:
    return (
        ", ".join(map(str, value))
        if isinstance(value, tuple)
        else f"{value:g}"
        if isinstance(value, float)
        else str(value)
    )
