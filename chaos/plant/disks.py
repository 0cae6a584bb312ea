"""Small disks of a run, which can be filled without harm to the machine."""

import subprocess
from pathlib import Path


def mount(directory: Path, size: str) -> None:
    """Put a disk of this size below a directory."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "chaos", str(directory)]
    subprocess.run(command, check=True, capture_output=True)


def make_read_only(directory: Path) -> None:
    """Let nobody open anything below a disk for writing; what is open already stays writable.

    The disk itself cannot be made read-only while files of it are open for writing.
    """
    for options in (["--bind", str(directory)], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *options, str(directory)], check=True, capture_output=True)


def unmount(directory: Path) -> None:
    """Take away what was mounted last, if anything; whoever still uses it keeps it until then."""
    if directory.is_mount():
        subprocess.run(["umount", "--lazy", str(directory)], check=False)


def unmount_all(directory: Path) -> None:
    """Take away everything that was mounted on a directory."""
    while directory.is_mount():
        unmount(directory)
