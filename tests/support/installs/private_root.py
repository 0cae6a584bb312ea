"""This machine's files as a host of its own: what is installed there is seen nowhere else.

The directories that an installation writes to are overlays in a mount namespace, and there is no
systemd. Network, processes and programs are this machine's.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.accounts import requires, requires_root

_OVERLAYS = (
    "/etc",
    "/home",
    "/opt",
    "/usr/bin",
    "/usr/lib",
    "/usr/local/bin",
    "/var/lib",
    "/var/log",
)
_MAKE = f"""
set -e
mount -t tmpfs none "$0"
for place in {" ".join(_OVERLAYS)}; do
  own=$0$place
  mkdir -p "$own/upper" "$own/work"
  mount -t overlay overlay -o "lowerdir=$place,upperdir=$own/upper,workdir=$own/work" "$place"
done
[ ! -d /run/systemd/system ] || mount -t tmpfs none /run/systemd
rm -rf /etc/holdline /opt/holdline /var/lib/holdline-controller
echo made
exec cat
"""


class PrivateRoot:
    """A namespace; ``keeper`` is a process in it."""

    def __init__(self, keeper: int) -> None:
        self._keeper = keeper

    def run(self, command: str, *, is_right: bool = True) -> str:
        """Run a command line as root there; returns all that it prints."""
        ran = subprocess.run(
            ["nsenter", "-t", str(self._keeper), "--mount", "sh", "-c", command],
            env={"PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin", "HOME": "/"},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
        assert (ran.returncode == 0) == is_right, ran.stdout + ran.stderr
        return ran.stdout + ran.stderr


@contextmanager
def private_root(scratch: Path) -> Iterator[PrivateRoot]:
    """Make the namespace; ``scratch`` is an empty directory."""
    requires_root()
    requires("unshare", "nsenter", "useradd")
    command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MAKE, str(scratch)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as keeper:
        assert keeper.stdout is not None
        assert keeper.stdout.readline() == b"made\n"
        yield PrivateRoot(keeper.pid)
