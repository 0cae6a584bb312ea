"""The daemon's configuration: its command line's options, checked before anything else happens.

Every refusal is a ConfigurationError whose text says what to change.
"""

import ipaddress
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from controller_client.errors import ConfigurationError
from controller_client.logs.paths import MANAGED_DIRECTORY, LogPaths
from controller_client.protocol.messages import ResourceLimits
from controller_client.system.control_group import delegated_root, is_usable
from controller_client.system.resource_limits import NO_LIMITS

# The directory in which logs may be monitored and deleted by default.
SESSION_LOGS: Final = MANAGED_DIRECTORY
CREDENTIAL = re.compile(r"ctl_[A-Za-z0-9]+_[A-Za-z0-9_-]+")
_MAX_CREDENTIAL_FILE_BYTES = 4096


@dataclass(frozen=True)
class DaemonConfig:
    """A checked configuration of the daemon.

    ``credential`` was read from ``credential_file`` and is kept out of every representation.
    ``policy_file`` None stands for the files of the usual places. ``limits`` is the most that any
    session may use. ``control_group`` is the directory for the groups of sessions, if there is one.
    ``log_paths`` are the logs that may be monitored.
    """

    server_url: str
    credential: str = field(repr=False)
    state_dir: Path
    credential_file: Path
    policy_file: Path | None
    limits: ResourceLimits
    control_group: Path | None
    log_paths: LogPaths


def load_config(
    *,
    server: str,
    credential_file: Path | None,
    state_dir: Path | None,
    policy_file: Path | None = None,
    limits: ResourceLimits = NO_LIMITS,
    control_group: str = "auto",
    log_roots: Sequence[str] = (),
    session_logs: str = SESSION_LOGS,
) -> DaemonConfig:
    """Check the options of ``run`` and create the state directory. Raises ConfigurationError.

    ``credential_file`` None stands for the file that ``enroll`` writes.
    """
    server_url = check_server_url(server)
    credential_file = credential_file or default_credential_file(_or_default(state_dir))
    return DaemonConfig(
        server_url=server_url,
        credential=read_credential(credential_file),
        state_dir=prepare_state_dir(state_dir),
        credential_file=credential_file.absolute(),
        policy_file=policy_file,
        limits=limits,
        control_group=find_control_group(control_group),
        log_paths=LogPaths(log_roots, session_logs),
    )


def check_user(*, allow_root: bool) -> None:
    """Raise ConfigurationError for root, unless root is allowed."""
    if os.geteuid() == 0 and not allow_root:
        raise ConfigurationError(
            "refusing to run as root: every program of the daemon would run as root too. Use a "
            "dedicated user, or --allow-root if you mean it"
        )


def default_credential_file(state_dir: Path) -> Path:
    """Name the file where ``enroll`` writes the credential and ``run`` looks for it."""
    return state_dir / "credential"


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


def check_server_url(url: str) -> str:
    """Return ``url`` if it is wss://, or ws:// to this machine, and holds nothing secret."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("--server is not a URL: wss://HOST/ws/controller/") from None
    if parts.scheme not in {"ws", "wss"} or not host:
        raise ConfigurationError("--server must look like wss://HOST/ws/controller/")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            "--server must have no user, query or fragment; the credential comes from "
            "--credential-file"
        )
    if parts.scheme == "ws" and not _is_loopback(host):
        raise ConfigurationError(
            "ws:// is unencrypted and allowed to a loopback address only; use wss://"
        )
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_credential(path: Path) -> str:
    """Read the one line of ``path``, a file that only its owner may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no credential file {path}; enrol this host first: holdline-controller enroll"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot open the credential file {path}: {error.strerror}"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"the credential file {path} is not a regular file")
        _check_private(f"the credential file {path}", path, status, 0o600)
        content = os.read(descriptor, _MAX_CREDENTIAL_FILE_BYTES)
    finally:
        os.close(descriptor)
    credential = content.decode("ascii", "replace").strip()
    if not CREDENTIAL.fullmatch(credential):
        raise ConfigurationError(
            f"the credential file {path} does not hold one line ctl_<keyid>_<secret>; enrol this "
            "host again: holdline-controller enroll --replace"
        )
    return credential


def prepare_state_dir(path: Path | None) -> Path:
    """Create the state directory if it is missing; return it as an absolute path.

    None stands for ``$XDG_STATE_HOME/holdline-controller``, else the same under
    ``~/.local/state``. The directory has to belong to this user, with mode 0700.
    """
    directory = _or_default(path).absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(directory)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the state directory {directory}: {error.strerror}; name another with "
            "--state-dir"
        ) from None
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"the state directory {directory} is a link or a file; name the directory itself with "
            "--state-dir"
        )
    _check_private(f"the state directory {directory}", directory, status, 0o700)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"the state directory {directory} is not writable; run: chmod 700 {directory}"
        )
    return directory


def _or_default(state_dir: Path | None) -> Path:
    if state_dir is not None:
        return state_dir
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "holdline-controller"


def _check_private(what: str, path: Path, status: os.stat_result, mode: int) -> None:
    """Raise ConfigurationError unless ``path`` belongs to this user and nobody else may use it."""
    if status.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{what} belongs to another user; run as that user, or name one of your own"
        )
    if status.st_mode & 0o077:
        raise ConfigurationError(f"{what} is open to others; run: chmod {mode:o} {path}")
