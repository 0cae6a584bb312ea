"""Who this daemon is: its persistent instance id, its host's boot id, and the lock that keeps it the only one on its state directory."""

import fcntl
import os
import platform
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID, uuid4

from controller_client.errors import AlreadyRunning, ConfigurationError

_LINUX_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class HostIdentity:
    """What HELLO says about the host; it does not change while the daemon runs."""

    instance_id: str
    boot_id: str
    os: str
    platform: str
    hostname: str


def host_identity(state_dir: Path) -> HostIdentity:
    """The identity of this daemon. Raises ConfigurationError if its instance id cannot be kept."""
    return HostIdentity(
        instance_id=_instance_id(state_dir / "instance_id"),
        boot_id=_boot_id(),
        os=platform.system(),
        platform=platform.platform(),
        hostname=socket.gethostname(),
    )


def lock_state_dir(state_dir: Path) -> int:
    """The descriptor that holds the lock until the daemon dies. Raises AlreadyRunning, ConfigurationError."""
    try:
        # Closed on exec, so that no holder inherits it and keeps the next daemon out.
        descriptor = os.open(state_dir / "daemon.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise ConfigurationError(f"cannot lock the state directory {state_dir}: {error.strerror}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise AlreadyRunning(str(state_dir)) from None
    return descriptor


def _instance_id(path: Path) -> str:
    try:
        return str(UUID(path.read_text("ascii").strip()))
    except FileNotFoundError:
        return _new_instance_id(path)
    except (OSError, ValueError):
        raise ConfigurationError(f"{path} cannot be read or does not hold a UUID; remove it to be given a new identity") from None


def _new_instance_id(path: Path) -> str:
    instance_id = str(uuid4())
    temporary = path.with_suffix(".new")
    try:
        temporary.write_text(instance_id + "\n", "ascii")
        temporary.replace(path)
    except OSError as error:
        raise ConfigurationError(f"cannot write {path}: {error.strerror}") from None
    return instance_id


def _boot_id() -> str:
    if sys.platform == "darwin":
        # "{ sec = 1753000000, usec = 0 } …": the moment of boot names the boot.
        output = subprocess.run(["/usr/sbin/sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=True).stdout
        return output.split("}")[0].strip("{ ")
    return _LINUX_BOOT_ID.read_text("ascii").strip()
