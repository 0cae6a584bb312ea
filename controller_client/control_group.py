"""Control groups (cgroup v2) of sessions, on hosts that gave the daemon a group of its own.

A session's programs are in a group below the delegated one; their holder is not, so that killing the group leaves it alive. The group
limits processes and memory of the session as a whole, and nothing in it can escape a kill.
"""

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from controller_client.protocol.messages import ResourceLimits

DAEMON_GROUP = "daemon"
"""Name of the leaf the daemon and its holders are in: ``DelegateSubgroup=`` of its systemd unit."""
_PREFIX = "session-"
_CONTROLLERS = ("pids", "memory")
_DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


def delegated_root(proc: Path = Path("/proc/self")) -> Path | None:
    """The group that the service manager handed over to this daemon; None if it did not, as on most desktops.

    It did if we are in its leaf ``daemon`` and the group above carries the mark of delegation.
    """
    try:
        own = next(line for line in (proc / "cgroup").read_text().splitlines() if line.startswith("0::"))[3:]
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
    except (OSError, StopIteration):
        return None
    mount = next((fields[4] for fields in mounts if fields[fields.index("-") + 1] == "cgroup2"), None)
    if mount is None or not own.endswith(f"/{DAEMON_GROUP}"):
        return None
    root = Path(mount, own.lstrip("/")).parent
    return root if _is_marked(root) and is_usable(root) else None


def is_usable(root: Path) -> bool:
    """Whether groups can be made in ``root`` and processes moved into them."""
    return all(os.access(root / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control"))


def enable_limits(root: Path) -> None:
    """Let the groups below ``root`` limit what it may limit itself; what cannot be enabled is left to the limits of processes."""
    for controller in _CONTROLLERS:
        with suppress(OSError):
            (root / "cgroup.subtree_control").write_text(f"+{controller}")


class SessionGroup:
    """The group of one session."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, root: Path, session_id: str) -> "SessionGroup":
        """The session's group, there or not."""
        return cls(root / f"{_PREFIX}{session_id}")

    def create(self, limits: ResourceLimits) -> None:
        """Make the group and set what it can limit. Raises OSError."""
        self.path.mkdir(exist_ok=True)
        self._limit("pids.max", limits.processes)
        self._limit("memory.max", limits.memory_bytes)
        if limits.memory_bytes is not None:
            # Else the limit would only be where swapping begins.
            self._limit("memory.swap.max", 0)

    def left_over(self, limits: ResourceLimits) -> ResourceLimits:
        """The limits that this group does not hold, for each process to be given."""
        return msgspec.structs.replace(
            limits,
            processes=None if self._has("pids.max") else limits.processes,
            memory_bytes=None if self._has("memory.max") else limits.memory_bytes,
        )

    def open_members(self) -> int | None:
        """A descriptor through which a process can move itself in; None if the group is gone."""
        try:
            return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError:
            return None

    def pids(self) -> list[int]:
        """Every process in the group."""
        try:
            return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]
        except (OSError, ValueError):
            return []

    def kill(self) -> None:
        """Kill everything in the group at once, also what is being forked (Linux 5.14)."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Remove the group; one with a process in it stays."""
        with suppress(OSError):
            self.path.rmdir()

    def _limit(self, name: str, value: int | None) -> None:
        if value is not None and self._has(name):
            (self.path / name).write_text(str(value))

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()


def _is_marked(group: Path) -> bool:
    for name in _DELEGATION_MARKS:
        with suppress(OSError, AttributeError):
            if os.getxattr(group, name) == b"1":
                return True
    return False
