"""The user that programs of a new host run as: not the daemon's, wherever the host can do that.

A host that was installed before keeps what it has, and so does one whose administrator has written
a policy, or has named the daemon's user: whoever names a user wants programs to be that user's.
ADR 0029 has the reasons for two users.
"""

import argparse
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from controller_client.administration.installation import (
    Installation,
    is_configured,
    make_user,
    say,
    write,
)
from controller_client.administration.managers import Systemd, Unmanaged, manager_of
from controller_client.config import file as configuration
from controller_client.config.errors import ConfigurationError
from controller_client.policy import file as policy
from controller_client.system.files.plain_file import open_plain
from controller_client.system.users.two_users import why_impossible

NAME: Final = "holdline-run"
_MARK: Final = "# Written by holdline-controller service install."
_MAY_CHANGE: Final = re.compile(r"^may_change[ \t]*=[ \t]*(?:true|false)\b", re.MULTILINE)


def is_wanted(place: Installation, options: argparse.Namespace) -> bool:
    """Return whether programs of this host get a user of their own.

    Asked before the configuration is written, since a host that has one is not new. Raises
    ConfigurationError.
    """
    return (
        place.is_system
        and place.config_file == configuration.SYSTEM_FILE
        and not options.one_user
        and options.run_as is None
        and not is_configured(place)
        and not place.credential_file.exists()
        and not policy.policy_paths(None, place.state_dir)
        and not _is_impossible(place)
    )


def _is_impossible(place: Installation) -> bool:
    reason = None if sys.platform.startswith("linux") else "only Linux can run them as another user"
    reason = reason or why_impossible()
    if reason is None and isinstance(manager_of(place), Unmanaged) and not shutil.which("setpriv"):
        reason = "a user of their own needs setpriv here, of util-linux"
    if reason is not None:
        say(f"programs run as {place.user}, as the daemon does: {reason}")
    return reason is not None


def make(place: Installation, *, allow_sudo: bool | None) -> None:
    """Make the user, and the policy that names it.

    ``allow_sudo`` None is no sudo. Where there is a unit of systemd, the unit sees to that, and the
    policy leaves the decision to the unit.
    """
    make_user(NAME)
    _join_group(place.user)
    may_change = isinstance(manager_of(place), Systemd) if allow_sudo is None else allow_sudo
    write(policy.SYSTEM_FILE, _text(may_change=may_change), place)
    say(f"wrote {policy.SYSTEM_FILE}: programs run as {NAME}, the daemon as {place.user}")


def _join_group(daemon: str) -> None:
    """Add the daemon's user to the group of programs: session logs are in a directory of both."""
    command = ["usermod", "--append", "--groups", NAME, daemon]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise ConfigurationError(f"cannot add {daemon} to the group {NAME}: {made.stderr.strip()}")


def set_sudo(place: Installation, options: argparse.Namespace) -> None:
    """Carry out ``--allow-sudo`` or its opposite in the policy that ``make`` wrote.

    Say where sudo stays as it is, against the option. Raises ConfigurationError.
    """
    allows: bool | None = options.allow_sudo
    if allows is None:
        return
    try:
        keeping = _keeping_user(place, options)
        if (allows == (keeping is not None)) and _set_may_change(place, allows=allows):
            keeping = _keeping_user(place, options)
    except ConfigurationError:
        # A policy of the daemon's user, say. The daemon judges that file when the daemon starts.
        return
    if allows and keeping is not None:
        say(
            f"sudo does not work in sessions: {keeping} has [users] without may_change = true. "
            "Change it there"
        )
    elif not allows and keeping is None and not isinstance(manager_of(place), Systemd):
        say(
            "sudo can work in sessions: no systemd runs here that keeps sudo from working. To "
            "forbid sudo: may_change = false in [users] of a policy file"
        )


def _keeping_user(place: Installation, options: argparse.Namespace) -> Path | None:
    """Find the policy file that keeps set-uid programs from working, if there is one."""
    paths = policy.policy_paths(options.policy, place.state_dir)
    files = ((path, policy.read_policy_file(path, is_daemon=False)) for path in paths)
    return next((path for path, file in files if file.keeps_user), None)


def _set_may_change(place: Installation, *, allows: bool) -> bool:
    """Change the policy of ``make`` if it is there; say whether that was done."""
    path, said = policy.SYSTEM_FILE, f"may_change = {str(allows).lower()}"
    if not place.is_system or not path.exists():
        return False
    with open_plain(path) as file:
        before = file.read().decode(errors="replace")
    after = _MAY_CHANGE.sub(said, before)
    if not before.startswith(_MARK) or after == before:
        return False
    write(path, after, place)
    say(f"wrote {path}: {said}")
    return True


def _text(*, may_change: bool) -> str:
    return (
        f"{_MARK}\n"
        "# Programs are of a user of their own: they cannot read what is the daemon's.\n"
        "# After a change: holdline-controller service start\n"
        "[users]\n"
        f'run_as = "{NAME}"\n'
        "# true: sudo works as far as sudoers and the unit, if there is one, let it.\n"
        f"may_change = {str(may_change).lower()}\n"
    )


def forget(directory: Path) -> None:
    """Remove the policy from the directory of the configuration, if ``make`` wrote it."""
    path = directory / policy.NAME
    if path.exists():
        with open_plain(path) as file:
            is_ours = file.read(len(_MARK)) == _MARK.encode()
        if is_ours:
            path.unlink()
