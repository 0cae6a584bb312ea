"""Small disks of a run, which can be filled without harm to the machine."""

import subprocess
from pathlib import Path
from typing import Final

_TRIES: Final = 50


def mount(directory: Path, size: str) -> None:
    """Put a disk of this size below a directory."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "chaos", str(directory)]
    subprocess.run(command, check=True, capture_output=True)


def make_read_only(directory: Path) -> None:
    """Let nobody open anything below a disk for writing; what is open already stays writable.

    The disk itself cannot be made read-only while files of it are open for writing. That holds for
    the new mount, too: if somebody opens a file just after it was made, it is made once more.
    """
    for _ in range(_TRIES):
        subprocess.run(
            ["mount", "--bind", str(directory), str(directory)], check=True, capture_output=True
        )
        remount = ["mount", "-o", "remount,bind,ro", str(directory)]
        tried = subprocess.run(remount, check=False, capture_output=True, text=True)
        if tried.returncode == 0:
            return
        unmount(directory)
    raise RuntimeError(f"{directory} stays writable: {tried.stderr.strip()}")


def unmount(directory: Path) -> None:
    """Take away what was mounted last, if anything; whoever still uses it keeps it until then."""
    if directory.is_mount():
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


def unmount_all(directory: Path) -> None:
    """Take away everything that was mounted on a directory."""
    while directory.is_mount():
        unmount(directory)
