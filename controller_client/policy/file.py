"""A policy file: TOML, of root or of the daemon's user, and writable by nobody else.

``[commands]`` has ``allowed`` (entries as in ``command_policy.allowlist``; without it any),
``denied`` (names and paths that nothing can allow) and ``search_path`` (absolute directories that
names are looked up in); ``[directories]`` has ``allowed``; ``[users]`` has ``allowed`` (whom the
daemon may run as), ``run_as`` (whom its programs run as) and ``may_change`` (whether its programs
can become others); ``[limits]`` has the most a session may use.
"""

import os
import pwd
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from controller_client.command_policy.allowlist import Allowlist, entry_problem
from controller_client.config.errors import ConfigurationError
from controller_client.config.owned_file import read_owned_file
from controller_client.protocol.messages import ResourceLimits
from controller_client.system.absence import is_there
from controller_client.system.resource_limits import NO_LIMITS
from controller_client.system.users.two_users import why_impossible

NAME = "policy.toml"
SYSTEM_FILE = Path("/etc/holdline/policy.toml")
# While a file of this name is beside a policy file, the host starts nothing and types nothing. It
# does not matter who owns the file.
STOP_NAME = "stop"
# A file of this name in the state directory keeps a stop that programs could have removed.
KEPT_STOP_NAME = "stopped"
DIGEST_CHARS = 12
# The tables of a policy file, and the keys that each may have.
KNOWN: Mapping[str, frozenset[str]] = {
    "commands": frozenset({"allowed", "denied", "search_path"}),
    "directories": frozenset({"allowed"}),
    "users": frozenset({"allowed", "may_change", "run_as"}),
    "limits": frozenset(ResourceLimits.__struct_fields__),
}


@dataclass(frozen=True)
class PolicyFile:
    """The content of one policy file.

    ``directories`` None allows any directory, ``users`` None any user of the daemon. ``run_as``
    None runs programs as the daemon's user.
    ``keeps_user``: a program stays the user it was started as, whatever set-uid program it runs.
    ``digest``: the beginning of the SHA-256 digest of the file.
    """

    allowlist: Allowlist = field(default_factory=Allowlist)
    denied: frozenset[str] = frozenset()
    search_path: str | None = None
    directories: tuple[str, ...] | None = None
    users: frozenset[str] | None = None
    keeps_user: bool = False
    run_as: str | None = None
    limits: ResourceLimits = NO_LIMITS
    digest: str = field(default="", compare=False)


def policy_paths(named: Path | None, state_dir: Path) -> list[Path]:
    """Return the paths of the policy files that are in force.

    That is the named file, or else the usual files that exist. Raises ConfigurationError.
    """
    if named is not None:
        return [named]
    return [path for path in (SYSTEM_FILE, state_dir / NAME) if _is_there(path)]


def _is_there(path: Path) -> bool:
    try:
        return is_there(path)
    except OSError as error:
        raise ConfigurationError(
            f"cannot tell whether there is a policy file {path}: {error.strerror}"
        ) from None


def stop_files(state_dir: Path) -> tuple[Path, ...]:
    """Return the paths at which an operator can put the file of the kill switch."""
    return (SYSTEM_FILE.with_name(STOP_NAME), state_dir / STOP_NAME)


def read_policy_file(path: Path, *, is_daemon: bool = True) -> PolicyFile:
    """Read and check a policy file. Raises ConfigurationError, which says what to change.

    ``is_daemon`` False: this process is not the daemon, so what the file says about the daemon's
    user is not held against it.
    """
    try:
        text = read_owned_file("the policy file", path, option="--policy")
        digest = sha256(text.encode()).hexdigest()[:DIGEST_CHARS]
        policy = replace(parse_policy(tomllib.loads(text)), digest=digest)
        if is_daemon:
            _check_users(policy)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the policy file {path} cannot be used: {error}") from None
    return policy


def user_of_programs(files: Iterable[PolicyFile]) -> str | None:
    """Return the user that programs run as, if it is not the daemon's. Raises ConfigurationError.

    The files that name one have to name the same.
    """
    names = {file.run_as for file in files if file.run_as is not None}
    if len(names) > 1:
        said = " and ".join(sorted(names))
        raise ConfigurationError(f"the policy files name different users in run_as: {said}")
    return next(iter(names), None)


def parse_policy(tables: Mapping[str, Any]) -> PolicyFile:
    """Turn the tables of a policy file into its content. Raises ValueError."""
    for table, keys in tables.items():
        if table not in KNOWN or not isinstance(keys, dict) or not keys.keys() <= KNOWN[table]:
            allowed = ", ".join(f"[{known}] {sorted(names)}" for known, names in KNOWN.items())
            raise ValueError(f"it may have {allowed}, and nothing else")
    commands, directories, users = (
        tables.get(table, {}) for table in ("commands", "directories", "users")
    )
    allowlist = Allowlist.parse(_texts(commands, "allowed"))
    denied = _texts(commands, "denied") or []
    if denied and allowlist.is_open:
        raise ValueError(
            "denied without allowed denies nothing, because any other program can run the denied "
            "one; list what is allowed"
        )
    for problem in filter(None, map(entry_problem, denied)):
        raise ValueError(problem)
    search_path = _paths(commands, "search_path")
    if search_path == []:
        raise ValueError("search_path has to name a directory")
    roots, names = _paths(directories, "allowed"), _texts(users, "allowed")
    return PolicyFile(
        allowlist=allowlist,
        denied=frozenset(denied),
        search_path=os.pathsep.join(search_path) if search_path else None,
        directories=tuple(roots) if roots is not None else None,
        users=frozenset(names) if names is not None else None,
        keeps_user="users" in tables and not _flag(users, "may_change"),
        run_as=_text(users, "run_as"),
        limits=ResourceLimits(
            **{name: _amount(tables["limits"], name) for name in tables.get("limits", {})}
        ),
    )


def _texts(table: Mapping[str, Any], key: str) -> list[str] | None:
    value = table.get(key)
    if value is None:
        return None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise ValueError(f"{key} has to be a list of texts")
    return value


def _text(table: Mapping[str, Any], key: str) -> str | None:
    value = table.get(key)
    if value is not None and (not isinstance(value, str) or not value):
        raise ValueError(f"{key} has to be a text")
    return value


def _flag(table: Mapping[str, Any], key: str) -> bool:
    match table.get(key, False):
        case bool(value):
            return value
    raise ValueError(f"{key} has to be true or false")


def _amount(table: Mapping[str, Any], key: str) -> int:
    value = table[key]
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 62:
        raise ValueError(f"{key} has to be a whole number from 1 on")
    return value


def _paths(table: Mapping[str, Any], key: str) -> list[str] | None:
    paths = _texts(table, key)
    if any(not path.startswith("/") or {os.pathsep, "\0"} & set(path) for path in paths or ()):
        raise ValueError(f"{key} has to be a list of absolute paths")
    return paths


def _check_users(policy: PolicyFile) -> None:
    """Raise ValueError unless this daemon meets what the file says about users."""
    user = os.geteuid()
    if policy.users is not None and user not in set(map(_user_id, policy.users)):
        raise ValueError(
            f"this daemon runs as user {user}, who is not in allowed of [users]; run it as a "
            "listed user"
        )
    if policy.keeps_user and not sys.platform.startswith("linux"):
        raise ValueError(
            "only Linux can keep programs from becoming another user; set may_change = true in "
            "[users]"
        )
    if policy.run_as is not None:
        _check_run_as(policy.run_as, user)
    elif policy.keeps_user and user == 0:
        raise ValueError(
            "a program of root can become any user; run the daemon as another user, or set "
            "may_change = true in [users]"
        )


def _check_run_as(name: str, daemon: int) -> None:
    """Raise ValueError unless this daemon can run programs as the user ``name``."""
    if _user_id(name) in {0, daemon}:
        raise ValueError(
            "run_as of [users] has to be another user than root and the daemon's own; without it "
            "programs run as the daemon's user"
        )
    if (problem := why_impossible()) is not None:
        raise ValueError(problem)


def _user_id(name: str) -> int:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        raise ValueError(f"this host has no user {name!a}") from None
