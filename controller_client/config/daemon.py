"""The daemon's configuration: its command line's options, checked before anything else happens.

Every refusal is a ConfigurationError whose text says what to change.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller_client.config.errors import ConfigurationError
from controller_client.config.log_directories import log_paths
from controller_client.config.places import (
    default_credential_file,
    default_state_dir,
    prepare_state_dir,
    read_credential,
)
from controller_client.config.server_address import DIRECT, Way, check_server_url
from controller_client.logs.paths import MANAGED_DIRECTORY, LogPaths
from controller_client.protocol.messages import ResourceLimits
from controller_client.system.control_group import delegated_root, is_usable

# The directory in which logs may be monitored and deleted by default.
SESSION_LOGS: Final = MANAGED_DIRECTORY


@dataclass(frozen=True)
class DaemonConfig:
    """A checked configuration of the daemon.

    ``credential`` was read from ``credential_file`` and is kept out of every representation.
    ``policy_file`` None stands for the files of the usual places. ``limits`` is the most that any
    session may use. ``control_group`` is the directory for the groups of sessions, if there is one.
    ``log_paths`` are the logs that may be monitored. ``way`` is how the server is reached.
    """

    server_url: str
    credential: str = field(repr=False)
    state_dir: Path
    credential_file: Path
    policy_file: Path | None
    limits: ResourceLimits
    control_group: Path | None
    log_paths: LogPaths
    way: Way = DIRECT


def load_config(
    *,
    server: str,
    credential_file: Path | None,
    state_dir: Path | None,
    policy_file: Path | None = None,
    max_processes: int | None = None,
    max_memory_bytes: int | None = None,
    max_file_size_bytes: int | None = None,
    max_open_files: int | None = None,
    control_group: str = "auto",
    log_roots: Sequence[str] = (),
    session_logs: str = SESSION_LOGS,
    way: Way = DIRECT,
) -> DaemonConfig:
    """Check the options of ``run`` and create the state directory. Raises ConfigurationError.

    ``credential_file`` None stands for the file that ``enroll`` writes.
    """
    server_url = check_server_url(server)
    credential_file = credential_file or default_credential_file(
        default_state_dir() if state_dir is None else state_dir
    )
    return DaemonConfig(
        server_url=server_url,
        credential=read_credential(credential_file),
        state_dir=prepare_state_dir(state_dir),
        credential_file=credential_file.absolute(),
        policy_file=policy_file,
        limits=ResourceLimits(
            processes=max_processes,
            memory_bytes=max_memory_bytes,
            file_size_bytes=max_file_size_bytes,
            open_files=max_open_files,
        ),
        control_group=find_control_group(control_group),
        log_paths=log_paths(log_roots, session_logs),
        way=way,
    )


def check_user(*, allow_root: bool) -> None:
    """Raise ConfigurationError for root, unless root is allowed."""
    if os.geteuid() == 0 and not allow_root:
        raise ConfigurationError(
            "refusing to run as root: programs would run as root too, unless the policy names "
            "another user. Use a dedicated user, or --allow-root if you mean it"
        )


def find_control_group(choice: str) -> Path | None:
    """Find the directory in which the control groups of sessions are made.

    ``choice`` is ``auto`` for the group that was delegated to this daemon, if there is one, ``off``
    for none, or a path. Raises ConfigurationError.
    """
    if choice == "off":
        return None
    if choice == "auto":
        try:
            return delegated_root()
        except OSError as error:
            raise ConfigurationError(
                f"cannot tell whether there is a control group for sessions: {error.strerror}; use "
                "--control-group off to run without"
            ) from None
    root = Path(choice)
    if not is_usable(root):
        raise ConfigurationError(
            f"{root} is not a cgroup v2 directory in which this user can make groups; use "
            "--control-group auto or off"
        )
    return root
