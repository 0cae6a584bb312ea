"""What may be started and typed, checked before anything is written. The host checks again, and its answer is final.

Which programs and directories are allowed is for ``command_rules``, in the transaction of the start or the input.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Final

from controller_client.protocol.keys import KEY_NAMES, is_key
from controller_client.protocol.limits import MAX_COMMAND_BYTES, MAX_FRAME_BYTES, MAX_INPUT_BYTES, MAX_KEYS, MAX_STDIN_BYTES
from projects.authentication import Caller
from projects.errors import CommandHasNul, EmptyCommand, InputTooLarge, InvalidArgument, UnknownKey

START_SCOPES: Final = ("session:start", "shell:any")
"""What a start may need: the second only where no list of allowed commands is in force, which ``command_rules`` finds out."""
MAX_PATH_BYTES: Final = 4096
MAX_ENV_BYTES: Final = 32 * 1024
# A control character takes six bytes in JSON: within its own limits a START could still be too long for a frame.
MAX_START_JSON_BYTES: Final = MAX_FRAME_BYTES - 8 * 1024
MAX_ROWS: Final = 500
MAX_COLS: Final = 1000
MAX_LIFETIME_SECONDS: Final = 7 * 24 * 3600.0
MIN_LIFETIME_SECONDS: Final = 1.0

_ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# Named in the hint of an unknown key; the families are described there in words.
_COMMON_KEYS: Final = tuple(name for name in KEY_NAMES if not re.fullmatch(r"ctrl-[a-z]|f\d+", name))


def start_scopes(_arguments: object = None) -> tuple[str, ...]:
    """What every start needs, whatever its arguments."""
    return START_SCOPES[:1]


def check_start(
    *, caller: Caller | None, command: str, cwd: str | None, env: Mapping[str, str], rows: int, cols: int, lifetime_seconds: float
) -> None:
    """Raises ScopeMissing, EmptyCommand, CommandHasNul or InvalidArgument. ``caller`` None is the server itself."""
    if caller is not None:
        for scope in start_scopes():
            caller.require(scope)
    if not command.strip():
        raise EmptyCommand
    texts = [command, cwd or "", *env.keys(), *env.values()]
    if any("\0" in text for text in texts):
        raise CommandHasNul
    problems = [problem for text in texts if (problem := _encoding_problem(text))][:1]
    if not problems:
        problems = _size_problems(command, cwd, env)
    problems += [f"env: {name[:64]!r} is not a variable name" for name in env if not _ENV_NAME.fullmatch(name)]
    problems += size_problems(rows, cols)
    if not MIN_LIFETIME_SECONDS <= lifetime_seconds <= MAX_LIFETIME_SECONDS:
        problems.append(f"lifetime_seconds: must be between {MIN_LIFETIME_SECONDS:g} and {MAX_LIFETIME_SECONDS:g}")
    if problems:
        raise InvalidArgument(problems)


def size_problems(rows: int, cols: int) -> list[str]:
    """What is wrong with a terminal's size."""
    problems = []
    if not 1 <= rows <= MAX_ROWS:
        problems.append(f"rows: must be between 1 and {MAX_ROWS}")
    if not 1 <= cols <= MAX_COLS:
        problems.append(f"cols: must be between 1 and {MAX_COLS}")
    return problems


def input_bytes(input_text: str, keys: Sequence[str]) -> bytes:
    """``input_text`` as it will be typed. Raises InvalidArgument, InputTooLarge or UnknownKey."""
    if input_text and keys:
        raise InvalidArgument(["keys: give either input_text or keys; one call types one of them"])
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
    return data


def stdin_bytes(text: str, *, command: str, cwd: str | None, env: Mapping[str, str]) -> bytes:
    """``text`` as a program's whole standard input, in one message with its command. Raises InvalidArgument or InputTooLarge."""
    if problem := _encoding_problem(text):
        raise InvalidArgument([f"input: {problem}"])
    data = text.encode()
    rest = len(json.dumps([command, cwd, dict(env)], ensure_ascii=False).encode())
    limit = min(MAX_STDIN_BYTES, (MAX_START_JSON_BYTES - rest) * 3 // 4)
    if len(data) > limit:
        raise InputTooLarge(len(data), limit)
    return data


def _encoding_problem(text: str) -> str | None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return "contains a lone surrogate, which is no character"
    return None


def _size_problems(command: str, cwd: str | None, env: Mapping[str, str]) -> list[str]:
    problems = []
    if len(command.encode()) > MAX_COMMAND_BYTES:
        problems.append(f"command: longer than {MAX_COMMAND_BYTES} bytes")
    if cwd is not None and not 1 <= len(cwd.encode()) <= MAX_PATH_BYTES:
        problems.append(f"cwd: must have 1 to {MAX_PATH_BYTES} bytes")
    if sum(len(name.encode()) + len(value.encode()) for name, value in env.items()) > MAX_ENV_BYTES:
        problems.append(f"env: more than {MAX_ENV_BYTES} bytes in all")
    if not problems and len(json.dumps([command, cwd, dict(env)], ensure_ascii=False).encode()) > MAX_START_JSON_BYTES:
        problems.append("command: too many control characters, with its environment it does not fit into a message")
    return problems
