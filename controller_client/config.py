"""What the daemon is told on its command line, checked before anything else happens.

Every refusal is a ConfigurationError whose text says what to change.
"""

import ipaddress
import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from controller_client.control_group import delegated_root, is_usable
from controller_client.errors import ConfigurationError
from controller_client.log_paths import LogPaths
from controller_client.protocol.messages import ResourceLimits
from controller_client.resource_limits import NO_LIMITS

CREDENTIAL = re.compile(r"ctl_[A-Za-z0-9]+_[A-Za-z0-9_-]+")
_MAX_CREDENTIAL_FILE_BYTES = 4096


@dataclass(frozen=True)
class DaemonConfig:
    """A checked configuration. ``credential`` is kept out of every representation; it was read from ``credential_file``.

    ``policy_file`` None: those of the usual places. ``limits`` is the most any session may use; ``control_group`` is where groups of
    sessions are made, if anywhere. ``log_paths`` are what may be monitored.
    """

    server_url: str
    credential: str = field(repr=False)
    state_dir: Path
    credential_file: Path | None = None
    policy_file: Path | None = None
    limits: ResourceLimits = NO_LIMITS
    control_group: Path | None = None
    log_paths: LogPaths = field(default_factory=LogPaths)


def load_config(
    *,
    server: str,
    credential_file: Path | None,
    state_dir: Path | None,
    allow_root: bool,
    policy_file: Path | None = None,
    limits: ResourceLimits = NO_LIMITS,
    control_group: str = "auto",
    log_paths: LogPaths | None = None,
) -> DaemonConfig:
    """Check everything and create the state directory. Raises ConfigurationError. ``credential_file`` None: the one ``enroll`` writes."""
    check_user(allow_root=allow_root)
    server_url = check_server_url(server)
    credential_file = credential_file or default_credential_file(state_dir)
    credential = read_credential(credential_file)
    directory = prepare_state_dir(state_dir or default_state_dir())
    return DaemonConfig(
        server_url=server_url,
        credential=credential,
        state_dir=directory,
        credential_file=credential_file.absolute(),
        policy_file=policy_file,
        limits=limits,
        control_group=find_control_group(control_group),
        log_paths=log_paths or LogPaths(),
    )


def check_user(*, allow_root: bool) -> None:
    """Raises ConfigurationError for root, unless it is allowed."""
    if os.geteuid() == 0 and not allow_root:
        raise ConfigurationError(
            "refusing to run as root, because every program would: use a dedicated user, or --allow-root if you mean it"
        )


def default_credential_file(state_dir: Path | None) -> Path:
    """Where ``enroll`` writes the credential and ``run`` looks for it: in the state directory."""
    return (state_dir or default_state_dir()) / "credential"


def find_control_group(choice: str) -> Path | None:
    """``auto``: the group that was delegated to this daemon, if any; ``off``: none; else the path of one it may use."""
    if choice == "auto":
        return delegated_root()
    if choice == "off":
        return None
    root = Path(choice)
    if not is_usable(root):
        raise ConfigurationError(f"{root} is not a cgroup v2 directory in which this user can make groups")
    return root


def check_server_url(url: str) -> str:
    """``url`` if it is wss://, or ws:// to this machine; nothing secret may travel in it."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ConfigurationError("--server is not a URL") from None
    if parts.scheme not in {"ws", "wss"} or not host:
        raise ConfigurationError("--server must look like wss://host/ws/controller/")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError("--server must have no user, query or fragment; the credential comes from --credential-file")
    if parts.scheme == "ws" and not _is_loopback(host):
        raise ConfigurationError("ws:// is unencrypted and allowed to a loopback address only; use wss://")
    return url


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def read_credential(path: Path) -> str:
    """The one line of ``path``, which nobody but its owner may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        raise ConfigurationError(f"cannot open the credential file {path}: {error.strerror}") from None
    try:
        _check_private_file(path, os.fstat(descriptor))
        content = os.read(descriptor, _MAX_CREDENTIAL_FILE_BYTES)
    finally:
        os.close(descriptor)
    credential = content.decode("ascii", "replace").strip()
    if not CREDENTIAL.fullmatch(credential):
        raise ConfigurationError(f"the credential file {path} does not hold one line ctl_<keyid>_<secret>")
    return credential


def _check_private_file(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"the credential file {path} is not a regular file")
    if status.st_uid != os.geteuid():
        raise ConfigurationError(f"the credential file {path} belongs to another user")
    if status.st_mode & 0o077:
        raise ConfigurationError(f"the credential file {path} is open to others; run: chmod 600 {path}")


def default_state_dir() -> Path:
    """``$XDG_STATE_HOME/holdline-controller``, else the same under ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "holdline-controller"


def prepare_state_dir(path: Path) -> Path:
    """``path``, absolute, existing, and ours alone (0700)."""
    directory = path.absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(directory)
    except OSError as error:
        raise ConfigurationError(f"cannot use the state directory {directory}: {error.strerror}") from None
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(f"the state directory {directory} is not a directory of its own (a symbolic link is refused)")
    if status.st_uid != os.geteuid():
        raise ConfigurationError(f"the state directory {directory} belongs to another user")
    if status.st_mode & 0o077:
        raise ConfigurationError(f"the state directory {directory} is open to others; run: chmod 700 {directory}")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigurationError(f"the state directory {directory} is not writable")
    return directory
