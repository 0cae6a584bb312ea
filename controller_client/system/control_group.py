"""Control groups (cgroup v2) of sessions, on hosts that gave the daemon a group of its own.

A session's programs are in a group below the delegated one; their holder is not, so that killing
the group leaves it alive. The group limits processes and memory of the session as a whole, and
nothing in it can escape a kill.
"""

import errno
import os
from contextlib import suppress
from pathlib import Path

import msgspec

from controller_client.protocol.messages import ResourceLimits
from controller_client.system.absence import is_absent
from controller_client.system.users.two_users import as_owner

DAEMON_GROUP = "daemon"
"""Name of the leaf the daemon and its holders are in: ``DelegateSubgroup=`` of its systemd unit."""
_PREFIX = "session-"
_CONTROLLERS = ("pids", "memory")
_DELEGATION_MARKS = ("user.delegate", "trusted.delegate")


def delegated_root(proc: Path = Path("/proc/self")) -> Path | None:
    """Return the control group that the service manager delegated to this daemon.

    None if there is none, as on most desktops. A group is delegated if this process is in its leaf
    ``daemon`` and the group itself carries the mark of delegation. Raises OSError.
    """
    try:
        own = next(
            line for line in (proc / "cgroup").read_text().splitlines() if line.startswith("0::")
        )[3:]
        mounts = [line.split() for line in (proc / "mountinfo").read_text().splitlines()]
    except StopIteration:
        return None
    except OSError as error:
        # Without it, programs would have fewer limits than their operator gave them.
        if is_absent(error) or isinstance(error, PermissionError):
            return None
        raise
    mount = next(
        (fields[4] for fields in mounts if fields[fields.index("-") + 1] == "cgroup2"), None
    )
    if mount is None or not own.endswith(f"/{DAEMON_GROUP}"):
        return None
    root = Path(mount, own.lstrip("/")).parent
    return root if _is_marked(root) and is_usable(root) else None


def is_usable(root: Path) -> bool:
    """Return whether groups can be made in ``root`` and processes moved into them."""
    return all(
        os.access(root / name, os.W_OK) for name in ("", "cgroup.procs", "cgroup.subtree_control")
    )


def enable_limits(root: Path) -> None:
    """Let the groups below ``root`` limit processes and memory, as far as ``root`` may.

    What cannot be enabled is limited for each process instead.
    """
    for controller in _CONTROLLERS:
        with suppress(OSError):
            (root / "cgroup.subtree_control").write_text(f"+{controller}")


class SessionGroup:
    """The control group of one session."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    def of(cls, root: Path, session_id: str) -> "SessionGroup":
        """Return the group of the session below ``root``, whether or not it was created."""
        return cls(root / f"{_PREFIX}{session_id}")

    @as_owner()
    def create(self, limits: ResourceLimits) -> None:
        """Make the group and set what it can limit. Raises OSError, and then there is none."""
        try:
            self.path.mkdir(exist_ok=True)
            self._limit("pids.max", limits.processes)
            self._limit("memory.max", limits.memory_bytes)
            if limits.memory_bytes is not None:
                # Else the limit would only be where swapping begins.
                self._limit("memory.swap.max", 0)
        except OSError:
            # An empty group would be taken for proof that nothing is left of the session.
            self.remove()
            raise

    def left_over(self, limits: ResourceLimits) -> ResourceLimits:
        """Return the limits that this group cannot hold, to be set for each process."""
        return msgspec.structs.replace(
            limits,
            processes=None if self._has("pids.max") else limits.processes,
            memory_bytes=None if self._has("memory.max") else limits.memory_bytes,
        )

    @as_owner()
    def open_members(self) -> int | None:
        """A descriptor through which a process can move itself in; None if the group is gone.

        Raises OSError.
        """
        try:
            return os.open(self.path / "cgroup.procs", os.O_WRONLY | os.O_CLOEXEC)
        except OSError as error:
            if _is_removed(error):
                return None
            raise

    def exists(self) -> bool:
        """Return whether the group was created and not removed since."""
        return self.path.is_dir()

    def pids(self) -> list[int]:
        """Return every process in the group; none if the group is gone. Raises OSError."""
        try:
            return [int(pid) for pid in (self.path / "cgroup.procs").read_text().split()]
        except OSError as error:
            if _is_removed(error):
                return []
            raise

    @as_owner()
    def kill(self) -> None:
        """Kill everything in the group at once, also what is being forked (Linux 5.14)."""
        with suppress(OSError):
            (self.path / "cgroup.kill").write_text("1")

    @as_owner()
    def remove(self) -> None:
        """Remove the group; one with a process in it stays."""
        with suppress(OSError):
            self.path.rmdir()

    def _limit(self, name: str, value: int | None) -> None:
        if value is not None and self._has(name):
            (self.path / name).write_text(str(value))

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()


def _is_removed(error: OSError) -> bool:
    """The kernel says ENODEV of the files of a group that was removed while they were open."""
    return is_absent(error) or error.errno == errno.ENODEV


def _is_marked(group: Path) -> bool:
    for name in _DELEGATION_MARKS:
        with suppress(OSError, AttributeError):
            if os.getxattr(group, name) == b"1":
                return True
    return False
