"""Small disks of a run, which can be filled without harm to the machine."""

import subprocess
from pathlib import Path


def mount(directory: Path, size: str) -> None:
    """Put a disk of this size below a directory."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "chaos", str(directory)]
    subprocess.run(command, check=True, capture_output=True)


def unmount(directory: Path) -> None:
    """Take the disk away, if there is one; whoever still uses it keeps it until then."""
    if directory.is_mount():
        subprocess.run(["umount", "--lazy", str(directory)], check=False)
