"""The user that programs of a new host run as: not the daemon's, wherever the host can do that.

A host that was installed before keeps what it has, and so does one whose administrator has written
a policy, or has named the daemon's user: whoever names a user wants programs to be that user's.
ADR 0029 has the reasons for two users.
"""

import argparse
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
from controller_client.administration.managers import Unmanaged, manager_of
from controller_client.config import file as configuration
from controller_client.config.errors import ConfigurationError
from controller_client.policy import file as policy
from controller_client.system.files.plain_file import open_plain
from controller_client.system.users.two_users import why_impossible

NAME: Final = "holdline-run"
_MARK: Final = "# Written by holdline-controller service install."


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


def make(place: Installation) -> None:
    """Make the user, and the policy that names it."""
    make_user(NAME)
    _join_group(place.user)
    write(policy.SYSTEM_FILE, _text(), place)
    say(f"wrote {policy.SYSTEM_FILE}: programs run as {NAME}, the daemon as {place.user}")


def _join_group(daemon: str) -> None:
    """Add the daemon's user to the group of programs: session logs are in a directory of both."""
    command = ["usermod", "--append", "--groups", NAME, daemon]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode:
        raise ConfigurationError(f"cannot add {daemon} to the group {NAME}: {made.stderr.strip()}")


def _text() -> str:
    return (
        f"{_MARK}\n"
        "# Programs are of a user of their own: they cannot read what is the daemon's.\n"
        "# After a change: holdline-controller service start\n"
        "[users]\n"
        f'run_as = "{NAME}"\n'
        "# sudo works as far as sudoers and the unit (--allow-sudo) let it.\n"
        "may_change = true\n"
    )


def forget(directory: Path) -> None:
    """Remove the policy from the directory of the configuration, if ``make`` wrote it."""
    path = directory / policy.NAME
    if path.exists():
        with open_plain(path) as file:
            is_ours = file.read(len(_MARK)) == _MARK.encode()
        if is_ours:
            path.unlink()
