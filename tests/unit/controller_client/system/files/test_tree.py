"""Directories that a program made are removed and walked, however deep and closed they are."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from controller_client.logs.deletion import directories_within, finish_deletions
from controller_client.logs.paths import LogPaths
from controller_client.session_files.directory import SessionDirectory
from controller_client.system.files import tree
from controller_client.system.files.tree import remove_tree

LEVELS = 1_100


def _names(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


def _make_deep(top: Path, levels: int = LEVELS) -> None:
    """A directory in a directory, and so on; each has a file as well."""
    top.mkdir(exist_ok=True)
    directory = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        os.close(os.open("file", os.O_WRONLY | os.O_CREAT, dir_fd=directory))
        os.mkdir("below", dir_fd=directory)
        inner = os.open("below", os.O_RDONLY, dir_fd=directory)
        os.close(directory)
        directory = inner
    os.close(directory)


@contextmanager
def _removed_after(top: Path) -> Iterator[None]:
    """No other tool of these tests could remove it."""
    try:
        yield
    finally:
        if top.exists():
            remove_tree(top)


def test_a_tree_too_deep_for_any_path_is_removed(tmp_path: Path) -> None:
    _make_deep(tmp_path / "deep")
    descriptors = len(_names(Path("/proc/self/fd")))
    remove_tree(tmp_path / "deep")
    assert _names(tmp_path) == []
    assert len(_names(Path("/proc/self/fd"))) == descriptors


def test_a_session_is_removed_with_the_deep_tree_of_its_program(tmp_path: Path) -> None:
    _make_deep(tmp_path / "session")
    with _removed_after(tmp_path / "session"):
        SessionDirectory(tmp_path / "session").remove()
        assert _names(tmp_path) == []


def test_the_removal_of_a_tree_that_grows_on_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    top, rmdir, made = tmp_path / "top", os.rmdir, count()
    monkeypatch.setattr(tree, "MAX_LOOKED_AT", 100)

    def grow(*place: Any, **within: Any) -> None:
        rmdir(*place, **within)
        if (number := next(made)) < 1000:
            (top / str(number)).mkdir()

    (top / "inner").mkdir(parents=True)
    with monkeypatch.context() as growing:
        growing.setattr(os, "rmdir", grow)
        with pytest.raises(OSError, match="too much in it for one removal"):
            remove_tree(top)
    assert next(made) < 200
    remove_tree(top)
    assert _names(tmp_path) == []


def test_a_tree_with_too_much_in_it_is_removed_by_repeats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree, "MAX_LOOKED_AT", 10)
    for number in range(6):
        (tmp_path / "top" / str(number)).mkdir(parents=True)
        (tmp_path / "top" / str(number) / "file").touch()
    repeats = 0
    while (tmp_path / "top").exists():
        repeats += 1
        assert repeats < 10
        with suppress(OSError):
            remove_tree(tmp_path / "top")
    assert repeats > 1


def test_what_links_point_to_stays(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    top = tmp_path / "top"
    (top / "inner").mkdir(parents=True)
    (top / "inner" / "link").symlink_to(kept)
    (top / "link").symlink_to(kept)
    remove_tree(top)
    (tmp_path / "alone").symlink_to(kept)
    SessionDirectory(tmp_path / "alone").remove()
    assert _names(tmp_path) == ["kept"]
    assert _names(kept) == ["file"]


def test_only_a_directory_is_a_tree(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name, error in (
        ("file", NotADirectoryError),
        ("link", NotADirectoryError),
        ("nothing", FileNotFoundError),
    ):
        with pytest.raises(error):
            remove_tree(tmp_path / name)
    SessionDirectory(tmp_path / "file").remove()
    assert _names(tmp_path) == ["link"]


@pytest.mark.parametrize("mode", [0o000, 0o100, 0o500])
def test_closed_directories_are_opened_and_removed(tmp_path: Path, mode: int) -> None:
    inner = tmp_path / "top" / "outer" / "inner"
    inner.mkdir(parents=True)
    (inner / "file").touch()
    for directory in (inner, inner.parent, inner.parent.parent):
        directory.chmod(mode)
    remove_tree(tmp_path / "top")
    assert _names(tmp_path) == []


def test_a_walk_ends_at_its_deepest_level(tmp_path: Path) -> None:
    _make_deep(tmp_path / "deep", 8)
    (tmp_path / "deep" / "empty").mkdir()
    with closing(directories_within(str(tmp_path / "deep"), 3)) as walk:
        found = [names for _, names in walk]
    assert sorted(found) == [[], ["file"], ["file"], ["file"]]


def test_a_deep_tree_among_the_logs_keeps_no_daemon_from_its_start(
    tmp_path: Path,
) -> None:
    logs = LogPaths([], managed=str(tmp_path / "logs"))
    _make_deep(tmp_path / "logs")
    with _removed_after(tmp_path / "logs"):
        finish_deletions(logs)
