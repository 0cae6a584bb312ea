"""The check of whom the daemon and programs run as, and of what keeps two users from working."""

import grp
import os
import pwd
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from controller_client.administration.doctor.finding import Finding
from controller_client.administration.doctor.host import AS_OWNER, check_sudo, name_of
from controller_client.administration.unit import UNIT, grants_rights, read_unit
from controller_client.config.errors import ConfigurationError
from controller_client.policy.file import (
    NAME,
    SYSTEM_FILE,
    PolicyFile,
    policy_paths,
    read_policy_file,
    user_of_programs,
)
from controller_client.session_files.daemon_status import DaemonStatus
from controller_client.system.users.two_users import ProgramUser, can_become_others, may_enter

_UNITS: Final = (Path("/etc/systemd/system") / UNIT, Path("/lib/systemd/system") / UNIT)
_INSTALL: Final = "holdline-controller service install"


def examine_users(
    state_dir: Path, policy: Path | None, daemon: DaemonStatus | None
) -> Iterator[Finding]:
    """Say whom programs run as, what they can reach as that user, and what is missing for it.

    ``policy`` is the policy file that the configuration names.
    """
    files: list[PolicyFile] = []
    usual = (SYSTEM_FILE, state_dir / NAME)
    closed = next(filter(_is_closed, usual if policy is None else (policy,)), None)
    if closed is not None:
        yield Finding("users", "warning", f"not known: {closed} is closed to this user", AS_OWNER)
        return
    try:
        paths = policy_paths(policy, state_dir)
        files = [read_policy_file(path, is_daemon=False) for path in paths]
        yield _users(user_of_programs(files), state_dir.stat().st_uid, daemon)
    except ConfigurationError as error:
        yield _problem(str(error), "correct the file, and start the daemon again")
    except OSError:
        yield Finding("users", "note", "not known while there is no state directory")
    yield check_sudo(daemon, keeps_user=any(file.keeps_user for file in files))


def _is_closed(policy: Path) -> bool:
    """Tell whether this user may not know whether there is that policy, or what it says."""
    try:
        os.close(os.open(policy, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK))
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _users(run_as: str | None, owner: int, daemon: DaemonStatus | None) -> Finding:
    return _one_user(owner) if run_as is None else _two_users(run_as, owner, daemon)


def _problem(text: str, remedy: str) -> Finding:
    return Finding("users", "problem", text, remedy)


def _one_user(owner: int) -> Finding:
    text = f"the daemon and all programs run as {name_of(owner)}"
    if owner == 0:
        return Finding("users", "warning", text, f"{_INSTALL} --run-as USER")
    return Finding("users", "note", f"{text}, so a program can read the credential of this host")


def _two_users(name: str, owner: int, daemon: DaemonStatus | None) -> Finding:
    try:
        user = ProgramUser.named(name)
    except KeyError:
        return _problem(
            f"run_as of the policy names {name}, and this host has no such user",
            f"useradd --create-home --shell /bin/bash {name}",
        )
    if user.uid in {0, owner}:
        return _problem(
            f"run_as of the policy names {name}; it has to be another user than root and the "
            "daemon's",
            "name another user in run_as",
        )
    return (
        _rights(name, owner, daemon)
        or _home(user)
        or _groups(user, owner)
        or Finding("users", "ok", f"programs run as {name}, and the daemon as {name_of(owner)}")
    )


def _rights(name: str, owner: int, daemon: DaemonStatus | None) -> Finding | None:
    """Find a daemon that may not become the user, by its process or else by its unit."""
    if owner == 0:
        return None
    if daemon is not None:
        if any(map(_has_rights, _children(daemon.pid))):
            return None
        return _problem(
            f"the daemon was started before run_as was {name}, or without the rights for it",
            "holdline-controller service start",
        )
    units = [*_UNITS, *(file for unit in _UNITS for file in Path(f"{unit}.d").glob("*.conf"))]
    texts = [read_unit(unit) for unit in units if unit.exists()]
    if not texts or any(map(grants_rights, texts)):
        return None
    return _problem(
        f"the unit gives the daemon no right to run programs as {name}",
        f"{_INSTALL}, or AmbientCapabilities=CAP_SETUID CAP_SETGID by: systemctl edit {UNIT}",
    )


def _children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _has_rights(pid: int) -> bool:
    try:
        return can_become_others(pid)
    except OSError:
        return False


def _home(user: ProgramUser) -> Finding | None:
    try:
        home = Path(pwd.getpwuid(user.uid).pw_dir)
    except KeyError:
        # Nobody has this number any more: programs start in /.
        return None
    make = f"install -d -o {user.name} -g {user.gid} -m 700 {home}"
    try:
        if not home.is_dir():
            text = f"{user.name} has no home {home}: its programs start in /"
            return Finding("users", "warning", text, make)
        closed = next((p for p in (*home.parents[::-1], home) if not may_enter(user, p)), None)
    except OSError:
        # The daemon's user cannot look there; that says nothing about the other one.
        return None
    if closed is None:
        return None
    return _problem(
        f"{user.name} cannot enter {closed}, so a program that names no directory does not start",
        f"open it to {user.name}: chown or chmod o+x {closed}",
    )


def _groups(user: ProgramUser, owner: int) -> Finding | None:
    try:
        group = pwd.getpwuid(owner).pw_gid
    except KeyError:
        # A number of a container, to which nobody has given a name or a group.
        return None
    if group not in user.groups:
        return None
    try:
        remedy = f"gpasswd --delete {user.name} {grp.getgrgid(group).gr_name}"
    except KeyError:
        # Nobody is a member of a group without a name, but as whose first group it is.
        remedy = f"give {user.name} another group of its own: usermod --gid"
    return Finding(
        "users",
        "warning",
        f"{user.name} is in the group of {name_of(owner)}, so programs can read the policy",
        remedy,
    )
