"""The configuration file ``controller.toml``: what a host's operator decides once.

Each key has the value of one option of the command line, which comes first. Like a policy file, it
belongs to root or to the daemon's user, and nobody else can write to it.
"""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from controller_client.config.errors import ConfigurationError
from controller_client.config.log import LEVELS
from controller_client.config.owned_file import read_owned_file
from controller_client.config.places import user_base

NAME: Final = "controller.toml"
SYSTEM_FILE: Final = Path("/etc/holdline") / NAME
OFF: Final = Path("off")
# In bytes, that many mebibytes are still a number that the protocol and the kernel know.
MOST: Final = (1 << 40) - 1
_MEBIBYTE: Final = 1024 * 1024

Value = object
Check = Callable[[Value], Value]


def _text(value: Value) -> str:
    # No file, host or group has a name with a NUL: each use of one would fail in its own way.
    if isinstance(value, str) and value and "\0" not in value:
        return value
    raise ValueError("has to be a text, without a NUL")


def _path(value: Value) -> Path:
    path = Path(_text(value))
    if not path.is_absolute():
        raise ValueError("has to be an absolute path")
    return path


def _paths(value: Value) -> list[str]:
    match value:
        case [*entries]:
            return [str(_path(entry)) for entry in entries]
    raise ValueError("has to be a list of absolute paths")


def _texts(value: Value) -> list[str]:
    match value:
        case [*entries]:
            return [_text(entry) for entry in entries]
    raise ValueError("has to be a list of texts")


def _flag(value: Value) -> bool:
    if isinstance(value, bool):
        return value
    raise ValueError("has to be true or false")


def _level(value: Value) -> str:
    if value in LEVELS:
        return str(value)
    raise ValueError(f"has to be one of {', '.join(LEVELS)}")


def _count(value: Value) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= MOST:
        return value
    raise ValueError(f"has to be a whole number from 1 to {MOST}")


def _mebibytes(value: Value) -> int:
    return _count(value) * _MEBIBYTE


# The keys of the file, each with the name of its option and the check of its value.
KEYS: Final[Mapping[str, tuple[str, Check]]] = {
    "server": ("server", _text),
    "labels": ("label", _texts),
    "state_dir": ("state_dir", _path),
    "policy": ("policy", _path),
    "session_logs": ("session_logs", lambda value: str(_path(value))),
    "log_roots": ("log_root", _paths),
    "control_group": ("control_group", _text),
    "ca_file": ("ca_file", _path),
    "proxy": ("proxy", _text),
    "allow_root": ("allow_root", _flag),
    "log_level": ("log_level", _level),
}
LIMITS: Final[Mapping[str, tuple[str, Check]]] = {
    "processes": ("max_processes", _count),
    "memory_mib": ("max_memory", _mebibytes),
    "file_size_mib": ("max_file_size", _mebibytes),
    "open_files": ("max_open_files", _count),
}
# The options that the file may name.
OPTIONS: Final = tuple(option for option, _ in (*KEYS.values(), *LIMITS.values()))


def find_file(named: Path | None) -> Path | None:
    """Return the file that is in force: the named one, the host's, or the user's own.

    None if there is none, or if ``named`` is ``off``.
    """
    if named is not None:
        return None if named == OFF else named
    return next((path for path in (SYSTEM_FILE, user_file()) if is_visible(path)), None)


def is_visible(path: Path) -> bool:
    """Tell whether a configuration file is there for this user.

    The host's directory is closed to users who have no part in its service.
    """
    try:
        return path.exists()
    except PermissionError:
        return False


def user_file() -> Path:
    """Return the place of a user's own file, beside the host's file."""
    return user_base("XDG_CONFIG_HOME", ".config") / "holdline" / NAME


def read_file(path: Path) -> dict[str, Value]:
    """Return the values of the file by the names of their options. Raises ConfigurationError."""
    try:
        tables = tomllib.loads(read_owned_file("the configuration file", path, option="--config"))
        limits = _table(tables.pop("limits", {}))
        return _checked(tables, KEYS, "") | _checked(limits, LIMITS, "limits.")
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path} cannot be used: {error}") from None


def _table(value: Value) -> Mapping[str, Value]:
    match value:
        case dict(table):
            return table
    raise ValueError("limits has to be a table: [limits]")


def _checked(
    table: Mapping[str, Value], keys: Mapping[str, tuple[str, Check]], prefix: str
) -> dict[str, Value]:
    found = {}
    for key, value in table.items():
        if key not in keys:
            raise ValueError(_unknown(key, keys, prefix))
        option, check = keys[key]
        try:
            found[option] = check(value)
        except ValueError as error:
            raise ValueError(f"{prefix}{key} {error}") from None
    return found


def _unknown(key: str, keys: Mapping[str, tuple[str, Check]], prefix: str) -> str:
    # Imported here: a file without a mistake needs no search for what was meant.
    from difflib import get_close_matches

    meant = get_close_matches(key, keys, n=1)
    hint = f"Did you mean {prefix}{meant[0]}?" if meant else f"It may have {', '.join(keys)}"
    return f"there is no key {prefix}{key}. {hint}"
