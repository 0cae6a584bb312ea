"""A policy file: TOML, of root or of the daemon's user, and writable by nobody else.

``[commands]`` has ``allowed`` (entries as in ``command_policy.allowlist``; without it any), ``denied`` (names and paths that nothing can
allow) and ``search_path`` (absolute directories that names are looked up in); ``[directories]`` has ``allowed``; ``[users]`` has
``allowed`` (whom the daemon may run as) and ``may_change`` (whether its programs can become others); ``[limits]`` has the most a session
may use.
"""

import os
import pwd
import stat
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from controller_client.command_policy.allowlist import Allowlist, entry_problem
from controller_client.errors import ConfigurationError
from controller_client.protocol.messages import ResourceLimits
from controller_client.resource_limits import NO_LIMITS

NAME = "policy.toml"
SYSTEM_FILE = Path("/etc/holdline/policy.toml")
STOP_NAME = "stop"
"""While a file of this name is in the directory of either policy file, whoever owns it, the host starts and types nothing."""
_MAX_BYTES = 1 << 20
KNOWN: Mapping[str, frozenset[str]] = {
    "commands": frozenset({"allowed", "denied", "search_path"}),
    "directories": frozenset({"allowed"}),
    "users": frozenset({"allowed", "may_change"}),
    "limits": frozenset(ResourceLimits.__struct_fields__),
}
"""Tables, and what may be said in them."""


@dataclass(frozen=True)
class PolicyFile:
    """What one file says. ``directories`` None: anywhere. ``users`` None: whoever the daemon runs as.

    ``keeps_user``: a program stays the user it was started as, whatever set-uid program it runs.
    """

    allowlist: Allowlist = field(default_factory=Allowlist)
    denied: frozenset[str] = frozenset()
    search_path: str | None = None
    directories: tuple[str, ...] | None = None
    users: frozenset[str] | None = None
    keeps_user: bool = False
    limits: ResourceLimits = NO_LIMITS


def load_policy_files(named: Path | None, state_dir: Path) -> list[PolicyFile]:
    """The file that was named, which has to be there; else those of the usual places that are. Raises ConfigurationError."""
    if named is not None:
        return [read_policy_file(named)]
    return [read_policy_file(path) for path in (SYSTEM_FILE, state_dir / NAME) if os.path.lexists(path)]


def stop_files(state_dir: Path) -> tuple[Path, ...]:
    """Where the kill switch is looked for."""
    return (SYSTEM_FILE.with_name(STOP_NAME), state_dir / STOP_NAME)


def read_policy_file(path: Path) -> PolicyFile:
    """Raises ConfigurationError, saying what to change."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigurationError(f"cannot open the policy file {path}: {error.strerror}") from None
    try:
        _check_owner(path, os.fstat(descriptor))
        content = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MAX_BYTES:
        raise ConfigurationError(f"the policy file {path} is larger than {_MAX_BYTES} bytes")
    try:
        policy = parse_policy(tomllib.loads(content.decode()))
        _check_users(policy)
    except ValueError as error:
        raise ConfigurationError(f"the policy file {path} cannot be used: {error}") from None
    return policy


def parse_policy(tables: Mapping[str, Any]) -> PolicyFile:
    """What the tables say. Raises ValueError."""
    for table, keys in tables.items():
        if table not in KNOWN or not isinstance(keys, dict) or not keys.keys() <= KNOWN[table]:
            raise ValueError(f"it may have {', '.join(f'[{known}] {sorted(names)}' for known, names in KNOWN.items())}, and nothing else")
    commands, directories, users = (tables.get(table, {}) for table in ("commands", "directories", "users"))
    allowlist = Allowlist.parse(_texts(commands, "allowed"))
    denied = _texts(commands, "denied") or []
    if denied and allowlist.is_open:
        raise ValueError("denied without allowed keeps nothing away, because any other program can run it: say what is allowed")
    for problem in filter(None, map(entry_problem, denied)):
        raise ValueError(problem)
    search_path = _paths(commands, "search_path")
    allowed, names = _paths(directories, "allowed"), _texts(users, "allowed")
    return PolicyFile(
        allowlist=allowlist,
        denied=frozenset(entry for name in denied for entry in (name, os.path.realpath(name) if "/" in name else name)),
        search_path=os.pathsep.join(search_path) if search_path else None,
        directories=tuple(allowed) if allowed is not None else None,
        users=frozenset(names) if names is not None else None,
        keeps_user="users" in tables and not _is_said(users, "may_change"),
        limits=ResourceLimits(**{name: _amount(tables["limits"], name) for name in tables.get("limits", {})}),
    )


def _texts(table: Mapping[str, Any], key: str) -> list[str] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{key} has to be a list of texts")
    return value


def _is_said(table: Mapping[str, Any], key: str) -> bool:
    match table.get(key, False):
        case bool(value):
            return value
    raise ValueError(f"{key} has to be true or false")


def _amount(table: Mapping[str, Any], key: str) -> int:
    value = table[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 62:
        raise ValueError(f"{key} has to be a number from 1 on")
    return value


def _paths(table: Mapping[str, Any], key: str) -> list[str] | None:
    paths = _texts(table, key)
    if any(not path.startswith("/") or os.pathsep in path for path in paths or ()):
        raise ValueError(f"{key} has to be a list of absolute paths")
    return paths


def _check_users(policy: PolicyFile) -> None:
    """Raises ValueError unless what the file says of users holds for this daemon."""
    user = os.geteuid()
    if policy.users is not None and user not in set(map(_user_id, policy.users)):
        raise ValueError(f"this daemon runs as user {user}, who is none of [users] allowed")
    if policy.keeps_user and not sys.platform.startswith("linux"):
        raise ValueError("only Linux can keep programs from becoming another user: say may_change = true under [users]")
    if policy.keeps_user and user == 0:
        raise ValueError("a program of root can become anybody: run the daemon as another user, or say may_change = true under [users]")


def _user_id(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ValueError(f"this host has no user {name!a}") from None


def _check_owner(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"the policy file {path} is not a regular file")
    if status.st_uid not in {0, os.geteuid()}:
        raise ConfigurationError(f"the policy file {path} belongs to another user; it has to be root's or the daemon's user's")
    if status.st_mode & 0o022:
        raise ConfigurationError(f"the policy file {path} can be written by others; run: chmod go-w {path}")
    above = path.absolute().parent.stat()
    if above.st_mode & 0o002 and not above.st_mode & stat.S_ISVTX:
        raise ConfigurationError(f"the directory of the policy file {path} can be written by anybody, who could replace it")
