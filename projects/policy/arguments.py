"""Checks the form of launches and of typed input, before anything is written.

The host checks again, and its answer is final.

Which programs and directories are allowed is for ``command_rules``, in the transaction of the start
or the input.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from controller_client.protocol.keys import KEY_NAMES, is_key
from controller_client.protocol.limits import (
    MAX_COMMAND_BYTES,
    MAX_FRAME_BYTES,
    MAX_INPUT_BYTES,
    MAX_KEYS,
    MAX_STDIN_BYTES,
)
from projects.accounts.authentication import Caller
from projects.errors.calls import InvalidArgument
from projects.errors.commands import CommandHasNul, EmptyCommand
from projects.errors.inputs import InputTooLarge, UnknownKey
from projects.models.accounts import MAX_LIFETIME_SECONDS
from projects.policy.launch import Launch
from projects.policy.typed_input import Typing

START_SCOPES: Final = ("session:start", "shell:any")
"""The scopes that a start may need.

The second is needed only where no list of allowed commands is in force; ``command_rules`` finds
out.
"""
MAX_PATH_BYTES: Final = 4096
MAX_ENV_BYTES: Final = 32 * 1024
# A control character takes six bytes in JSON: within its own limits a START could still be too long
# for a frame.
MAX_START_JSON_BYTES: Final = MAX_FRAME_BYTES - 8 * 1024
MAX_ROWS: Final = 500
MAX_COLS: Final = 1000
LIFETIME_SECONDS: Final = (1.0, float(MAX_LIFETIME_SECONDS))
"""The shortest and the longest lifetime that a caller may ask for."""

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Named in the hint of an unknown key; the families are described there in words.
_COMMON_KEYS: Final = tuple(
    name for name in KEY_NAMES if not re.fullmatch(r"ctrl-[a-z]|f\d+", name)
)


def start_scopes(_arguments: object = None) -> tuple[str, ...]:
    """The scopes that every start needs, whatever its arguments."""
    return START_SCOPES[:1]


def check_launch(caller: Caller | None, launch: Launch) -> None:
    """Check the form of a launch. ``caller`` None is the server itself.

    A lifetime may be as long as any project's. How long the project lets an interactive session
    live is checked by the transaction that starts the session.
    Raises ScopeMissing, EmptyCommand, CommandHasNul, InvalidArgument or InputTooLarge.
    """
    if caller is not None:
        for scope in start_scopes():
            caller.require(scope)
    if not launch.command.strip():
        raise EmptyCommand
    texts = [
        ("command", launch.command),
        ("cwd", launch.cwd or ""),
        *(("env", text) for variable in launch.env.items() for text in variable),
    ]
    if any("\0" in text for _, text in texts):
        raise CommandHasNul
    problems = [
        f"{name}: {problem}" for name, text in texts if (problem := _encoding_problem(text))
    ][:1]
    if not problems:
        problems = _size_problems(launch)
    bad_names = [name[:64] for name in launch.env if not _ENV_NAME.fullmatch(name)]
    problems += [f"env: {name!r} is not a variable name" for name in bad_names]
    problems += size_problems(launch.rows, launch.cols)
    seconds = launch.lifetime_seconds
    least, most = LIFETIME_SECONDS
    if seconds is not None and not least <= seconds <= most:
        problems.append(f"lifetime_seconds: must be between {least:g} and {most:g} s")
    if problems:
        raise InvalidArgument(problems)
    if launch.stdin_text:
        _check_stdin(launch)


def size_problems(rows: int, cols: int) -> list[str]:
    """The problems of a terminal's size; empty if there are none."""
    problems = []
    if not 1 <= rows <= MAX_ROWS:
        problems.append(f"rows: must be between 1 and {MAX_ROWS}")
    if not 1 <= cols <= MAX_COLS:
        problems.append(f"cols: must be between 1 and {MAX_COLS}")
    return problems


def typing_of(
    input_text: str,
    *,
    keys: Sequence[str] = (),
    eof: bool = False,
    secret: str | None = None,
) -> Typing:
    """The input that a caller asked for. Raises InvalidArgument, InputTooLarge or UnknownKey."""
    if len(keys) > MAX_KEYS:
        raise InvalidArgument([f"keys: at most {MAX_KEYS} at once"])
    for key in keys:
        if not is_key(key):
            raise UnknownKey(key, _COMMON_KEYS)
    if problem := _encoding_problem(input_text):
        raise InvalidArgument([f"input_text: {problem}"])
    data = input_text.encode()
    if len(data) > MAX_INPUT_BYTES:
        raise InputTooLarge(len(data), MAX_INPUT_BYTES)
    return Typing(data=data, keys=tuple(keys), eof=eof, secret=secret)


def _check_stdin(launch: Launch) -> None:
    """The standard input travels in one message with its command, and both must fit into it."""
    if problem := _encoding_problem(launch.stdin_text):
        raise InvalidArgument([f"input: {problem}"])
    size = len(launch.stdin_data)
    limit = min(MAX_STDIN_BYTES, (MAX_START_JSON_BYTES - _json_size(launch)) * 3 // 4)
    if size > limit:
        raise InputTooLarge(size, limit, is_all_at_once=True)


def _encoding_problem(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate, which is no character"
    return None


def _size_problems(launch: Launch) -> list[str]:
    problems = []
    if len(launch.command.encode()) > MAX_COMMAND_BYTES:
        problems.append(f"command: longer than {MAX_COMMAND_BYTES} bytes")
    if launch.cwd is not None and not 1 <= len(launch.cwd.encode()) <= MAX_PATH_BYTES:
        problems.append(f"cwd: must have 1 to {MAX_PATH_BYTES} bytes")
    env_bytes = sum(len(name.encode()) + len(value.encode()) for name, value in launch.env.items())
    if env_bytes > MAX_ENV_BYTES:
        problems.append(f"env: more than {MAX_ENV_BYTES} bytes in all")
    if not problems and _json_size(launch) > MAX_START_JSON_BYTES:
        too_long = "with its environment it does not fit into a message"
        problems.append(f"command: too many control characters, {too_long}")
    return problems


def _json_size(launch: Launch) -> int:
    """The size in bytes of the texts of a START, as JSON writes them."""
    texts = [launch.command, launch.cwd, dict(launch.env)]
    return len(json.dumps(texts, ensure_ascii=False).encode())
