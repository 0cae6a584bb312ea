"""The current boot of the host: its identity, and the seconds since it began."""

import sys
import time
from functools import lru_cache
from pathlib import Path
from typing import Final

from controller_client.protocol.messages import HostTime

_LINUX_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Return a text that no other boot of any host has. Raises OSError."""
    if sys.platform == "darwin":
        import subprocess

        # "{ sec = 1753000000, usec = 0 } …": the moment of boot names the boot.
        output = subprocess.run(
            ["/usr/sbin/sysctl", "-n", "kern.boottime"], capture_output=True, text=True, check=True
        ).stdout
        return output.split("}")[0].strip("{ ")
    return _LINUX_BOOT_ID.read_text("ascii").strip()


def lifetime_clock() -> float:
    """Return seconds since boot, by which lifetimes of sessions are measured.

    Suspending the host does not stop this clock; setting the time does not move it.
    """
    return time.clock_gettime(_CLOCK)


def host_time() -> HostTime:
    """Return this moment by the wall clock and by the clock of lifetimes."""
    return HostTime(wall=time.time(), clock=lifetime_clock())
