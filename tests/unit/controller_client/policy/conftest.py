"""Programs for the policies of a host."""

from pathlib import Path

import pytest


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A search path of its own: real programs, and links that lie."""
    directory = tmp_path / "bin"
    directory.mkdir()
    for name in ("sleep", "cat", "id", "bash", "busybox", "vim.basic"):
        (directory / name).write_bytes(b"\x7fELF")
        (directory / name).chmod(0o755)
    for name, target in {
        "echo": "id",
        "ls": "busybox",
        "editor": "vim.basic",
        "sh": "bash",
    }.items():
        (directory / name).symlink_to(target)
    return directory
