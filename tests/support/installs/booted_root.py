"""A Debian of its own on this machine, with a systemd of its own, in namespaces.

It has its own processes, network and units, so guides for whole machines can be carried out there.
It needs root and debootstrap.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.support.accounts import requires, requires_root
from tests.support.processes import children_of, is_running
from tests.support.waiting import wait_until

_PACKAGES: Final = "systemd,systemd-sysv,dbus,procps,ca-certificates,curl"
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_CGROUPS: Final = Path("/sys/fs/cgroup")
_BOOT_SECONDS: Final = 120.0
# What the machine needs to reach packages: names, certificates and the settings of its clients.
_REACH: Final = ("resolv.conf", "pip.conf", "npmrc", "ssl/certs/ca-certificates.crt")
# systemd's control groups are below one of its own.
_START: Final = """
for group in "${@:2}"; do
  echo $$ >"$group/cgroup.procs"
done
exec unshare --mount --pid --net --uts --ipc --cgroup --fork --kill-child bash -c "$0" boot "$1"
"""
# pivot_root and not chroot: a process in a chroot may make no user namespace, which units do.
_BOOT: Final = """
set -e
cd "$1"
mount --make-rprivate /
mount --bind . .
cd "$1"
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount -t tmpfs -o mode=755 tmpfs dev
mkdir dev/pts dev/shm
for name in null zero full random urandom tty; do
  touch dev/$name
  mount --bind /dev/$name dev/$name
done
ln -s /proc/self/fd dev/fd
ln -s fd/0 dev/stdin
ln -s fd/1 dev/stdout
ln -s fd/2 dev/stderr
mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs tmpfs dev/shm
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
  mount -t cgroup2 cgroup2 sys/fs/cgroup
else
  mount -t tmpfs -o mode=755 tmpfs sys/fs/cgroup
  mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
  mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
  mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
fi
hostname booted
ip link set lo up
mkdir -p mnt/old
pivot_root . mnt/old
umount -l /mnt/old
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin container=other /lib/systemd/systemd --system
"""


class BootedRoot:
    """The running system. ``path`` is its root directory on this machine."""

    def __init__(self, path: Path, first_process: int) -> None:
        self.path = path
        self._first_process = first_process

    def run(self, script: str, *, is_online: bool = False) -> str:
        """Run a script as root there, and return what it writes.

        A script that ``is_online`` has this machine's network, not the system's own. Raises
        AssertionError with what a script wrote that failed.
        """
        own = ["-m", "-p", "-u", "-i", "-C", *([] if is_online else ["-n"])]
        enter = ["nsenter", "-t", str(self._first_process), *own, "--root", "--wd"]
        environment = {"PATH": _PATH, "HOME": "/root"}
        if is_online:
            environment = {**os.environ, **environment, "DEBIAN_FRONTEND": "noninteractive"}
        done = subprocess.run(
            [*enter, "bash", "-euo", "pipefail", "-c", script],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}"
        return done.stdout


@contextmanager
def booted_root(path: Path) -> Iterator[BootedRoot]:
    """A minimal system below ``path``, which is a new directory; gone after the block."""
    requires_root()
    requires("debootstrap", "unshare", "nsenter", "pivot_root")
    suite = release()
    make = ["debootstrap", "--variant=minbase", f"--include={_PACKAGES}", suite, str(path)]
    made = subprocess.run(make, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stdout[-2000:]
    let_reach_packages(path)
    groups = [group for group in _own_groups(path.name) if group.parent.is_dir()]
    for group in groups:
        group.mkdir()
    outer = subprocess.Popen(
        ["bash", "-c", _START, _BOOT, str(path), *map(str, groups)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        (first,) = wait_until(lambda: children_of(outer.pid), _BOOT_SECONDS, "the first process")
        root = BootedRoot(path, first)
        wait_until(lambda: _is_up(root), _BOOT_SECONDS, "systemd to have started")
        yield root
    finally:
        outer.kill()
        outer.wait()
        wait_until(lambda: not is_running(first), _BOOT_SECONDS, "the system to be gone")
        for group in groups:
            _remove_group(group)
        shutil.rmtree(path)


def release() -> str:
    """Return the name of the release of Debian that this machine runs."""
    lines = Path("/etc/os-release").read_text().splitlines()
    (name,) = (line.partition("=")[2] for line in lines if line.startswith("VERSION_CODENAME="))
    return name


def let_reach_packages(root: Path) -> None:
    """Give a root directory what this machine needs to reach packages."""
    for name in _REACH:
        if (source := Path("/etc", name)).is_file():
            (root / "etc" / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, root / "etc" / name)
    for source in Path("/etc/apt/apt.conf.d").iterdir():
        if "Acquire::" in source.read_text():
            shutil.copy(source, root / "etc/apt/apt.conf.d")


def _own_groups(name: str) -> list[Path]:
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS / name]
    return [_CGROUPS / "systemd" / name, _CGROUPS / "unified" / name]


def _remove_group(group: Path) -> None:
    for place, _, _ in os.walk(group, topdown=False):
        with suppress(OSError):
            Path(place).rmdir()


def _is_up(root: BootedRoot) -> bool:
    with suppress(AssertionError):
        return root.run("systemctl is-system-running || true").strip() in {"running", "degraded"}
    return False
