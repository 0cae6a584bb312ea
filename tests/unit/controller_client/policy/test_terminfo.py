"""A terminal is described by a directory of the system, never by a user's."""

import os
from pathlib import Path

import pytest

from controller_client.policy.terminfo import system_directory


def _entry(
    directory: Path, name: str, *, part: str | None = None, owner: int = 0, mode: int = 0o644
) -> None:
    file = directory / (part or name[0]) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()
    os.chown(file, owner, 0)
    file.chmod(mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="files of root are made by root")
def test_an_entry_counts_only_if_root_alone_can_have_made_it(tmp_path: Path) -> None:
    system, mine = tmp_path / "system", tmp_path / "mine"
    _entry(mine, "vt100", owner=1000)
    _entry(mine, "vt220", mode=0o666)
    _entry(system, "vt100")
    _entry(system, "ansi", part="61")
    both = (str(mine), str(system))
    assert system_directory("vt100", directories=both) == str(system)
    assert system_directory("ansi", directories=both) == str(system)
    assert system_directory("vt220", directories=both) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="files of root are made by root")
def test_a_directory_that_describes_every_terminal_comes_first(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    _entry(first, "xterm")
    _entry(second, "xterm")
    _entry(second, "dumb")
    both = (str(first), str(second))
    assert system_directory("xterm", others=("dumb",), directories=both) == str(second)
    assert system_directory("xterm", others=("linux",), directories=both) == str(first)


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/passwd", ".x", "a/b", "x" * 65, "é"])
def test_an_invalid_terminal_name_has_no_directory(name: str) -> None:
    assert system_directory(name) is None
