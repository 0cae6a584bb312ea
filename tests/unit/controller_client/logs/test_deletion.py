"""Deleting a session's log: what goes, and what stays."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from controller_client.logs.deletion import delete, finish_deletions
from controller_client.logs.paths import LogPaths, identity_of
from controller_client.protocol.messages import DeleteFile
from tests.support.descriptors import spare_descriptors
from tests.support.processes import open_descriptors


@pytest.fixture
def managed(tmp_path: Path) -> Path:
    directory = tmp_path / "sessions"
    directory.mkdir(mode=0o700)
    (directory / "a.log").write_text("a")
    (tmp_path / "victim").mkdir()
    (tmp_path / "victim" / "a.log").write_text("victim")
    return directory


def code_of(managed: Path, path: Path | str, identity: str | None = None) -> str | None:
    """Why it stays; None: it is gone.

    The file at ``path`` is the one that was monitored, unless another is named.
    """
    if identity is None:
        identity = identity_of(Path(path).stat())
    answer = delete(
        LogPaths([str(managed.parent)], str(managed)), DeleteFile(path=str(path), identity=identity)
    )
    return answer.failure.code if answer.failure else None


def test_a_log_of_the_directory_is_deleted(managed: Path) -> None:
    assert code_of(managed, managed / "a.log") is None
    assert list(managed.iterdir()) == []
    assert code_of(managed, managed / "a.log", "1:1") == "FILE_NOT_FOUND"


def test_a_log_of_elsewhere_stays_although_it_may_be_read(managed: Path) -> None:
    assert code_of(managed, managed.parent / "victim" / "a.log") == "NOT_MANAGED"
    assert code_of(managed, f"{managed}/../victim/a.log") == "NOT_MANAGED"
    assert code_of(managed, managed) == "NOT_MANAGED"


def _link(managed: Path) -> str:
    (managed / "x").symlink_to("../victim/a.log")
    return f"{managed}/x"


def _directory_link(managed: Path) -> str:
    (managed / "x").symlink_to("../victim")
    return f"{managed}/x/a.log"


def _hardlink(managed: Path) -> str:
    os.link(managed.parent / "victim" / "a.log", managed / "x")
    return f"{managed}/x"


def _fifo(managed: Path) -> str:
    os.mkfifo(managed / "x")
    return f"{managed}/x"


def _directory(managed: Path) -> str:
    (managed / "x").mkdir()
    return f"{managed}/x"


@pytest.mark.parametrize(
    ("make", "code"),
    [
        (_link, "OTHER_FILE"),
        (_directory_link, "NOT_MANAGED"),
        (_hardlink, "OTHER_FILE"),
        (_fifo, "OTHER_FILE"),
        (_directory, "OTHER_FILE"),
    ],
)
def test_what_is_no_plain_file_of_the_directory_stays(
    managed: Path, make: Callable[[Path], str], code: str
) -> None:
    path = make(managed)
    names = sorted(managed.iterdir())
    assert code_of(managed, path) == code
    assert (managed.parent / "victim" / "a.log").read_text() == "victim"
    assert sorted(managed.iterdir()) == names


def test_another_file_of_the_name_stays(managed: Path) -> None:
    monitored = identity_of((managed / "a.log").stat())
    (managed / "a.log").rename(managed / "b.log")
    (managed / "a.log").write_text("another")
    assert code_of(managed, managed / "a.log", monitored) == "OTHER_FILE"
    assert (managed / "a.log").read_text() == "another"


def _swap_in(
    managed: Path, monkeypatch: pytest.MonkeyPatch, then: Callable[[], object] = lambda: None
) -> None:
    """Put the victim in the log's place at the next rename, and call ``then`` after it."""
    rename, victim = os.rename, managed.parent / "victim" / "a.log"

    def swap(source: str, target: str, **where: int) -> None:
        monkeypatch.setattr(os, "rename", rename)
        victim.replace(managed / "a.log")
        rename(source, target, **where)
        then()

    monkeypatch.setattr(os, "rename", swap)


def test_what_takes_its_place_between_the_looks_is_put_back(
    managed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _swap_in(managed, monkeypatch)
    assert code_of(managed, managed / "a.log") == "OTHER_FILE"
    assert (managed / "a.log").read_text() == "victim"
    assert list(managed.iterdir()) == [managed / "a.log"]


def test_a_directory_that_anybody_can_write_to_is_not_managed(managed: Path) -> None:
    managed.chmod(0o777)
    assert code_of(managed, managed / "a.log") == "NOT_MANAGED"
    assert (managed / "a.log").exists()


def test_a_directory_below_that_anybody_can_write_to_is_not_managed(managed: Path) -> None:
    inner = managed / "inner"
    inner.mkdir()
    (inner / "b.log").write_text("b")
    inner.chmod(0o777)
    assert code_of(managed, inner / "b.log") == "NOT_MANAGED"
    inner.chmod(0o1777)
    assert code_of(managed, inner / "b.log") == "NOT_MANAGED"
    inner.chmod(0o770)
    assert code_of(managed, inner / "b.log") is None


def test_what_cannot_be_looked_at_now_is_not_called_unmanaged(managed: Path) -> None:
    for spare in range(2):
        with spare_descriptors(spare):
            code = code_of(managed, managed / "a.log", "1:1")
        assert code == ("OTHER_FILE" if spare else "DELETE_FAILED")
    assert code_of(managed, managed / "none" / "a.log", "1:1") == "FILE_NOT_FOUND"
    assert code_of(managed, managed / "a.log" / "below", "1:1") == "NOT_MANAGED"


def test_whatever_the_answer_is_no_descriptor_stays_open(managed: Path) -> None:
    inner = managed / "inner"
    (inner / "more").mkdir(parents=True)
    (inner / "more" / "b.log").write_text("b")
    (inner / "open").mkdir()
    (inner / "open").chmod(0o777)
    before = open_descriptors(os.getpid())
    for path in (
        inner / "more" / "none.log",
        inner / "none" / "b.log",
        inner / "open" / "b.log",
        inner / "more",
        managed / "a.log" / "below",
    ):
        assert code_of(managed, path, "1:1") is not None
    assert code_of(managed, inner / "more" / "b.log") is None
    assert open_descriptors(os.getpid()) == before


def test_a_swapped_file_whose_name_was_taken_again_keeps_its_secret_name(
    managed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _swap_in(managed, monkeypatch, lambda: (managed / "a.log").write_text("a third"))
    assert code_of(managed, managed / "a.log") == "OTHER_FILE"
    assert sorted(path.read_text() for path in managed.iterdir()) == ["a third", "victim"]
    assert (managed / "a.log").read_text() == "a third"


def test_a_begun_deletion_is_finished_however_deep_it_is(managed: Path) -> None:
    for level in range(2, 5):
        directory = managed.joinpath(*"abcd"[:level])
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "x.log").write_text("x")
        identity = identity_of((directory / "x.log").stat()).replace(":", "-")
        (directory / "x.log").rename(directory / f".deleting-{level:032x}-{identity}")
    finish_deletions(LogPaths(managed=str(managed)))
    assert [path for path in managed.rglob("*") if path.is_file()] == [managed / "a.log"]


def test_a_directory_whose_place_a_link_took_is_not_managed(managed: Path) -> None:
    managed.rename(managed.parent / "moved")
    managed.symlink_to("victim")
    assert code_of(managed, managed / "a.log") == "NOT_MANAGED"
    assert (managed.parent / "victim" / "a.log").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_log_of_another_user_stays(managed: Path) -> None:
    os.chown(managed / "a.log", 12345, 12345)
    assert code_of(managed, managed / "a.log") == "NOT_OWNED"
    os.chown(managed, 12345, 12345)
    assert code_of(managed, managed / "a.log") == "NOT_MANAGED"


def test_what_a_killed_daemon_had_begun_is_finished_and_nothing_else(managed: Path) -> None:
    inner = managed / "inner"
    inner.mkdir(mode=0o700)
    (inner / "b.log").write_text("b")
    begun = [managed / "a.log", inner / "b.log"]
    names = [
        f".deleting-{number:032x}-{identity_of(path.stat()).replace(':', '-')}"
        for number, path in enumerate(begun)
    ]
    for path, name in zip(begun, names, strict=True):
        path.rename(path.with_name(name))
    others = [
        managed / f".deleting-{9:032x}-1-2",
        managed / f".deleting-{9:032x}",
        managed / "c.log",
    ]
    for path in others:
        path.write_text("other")
    victim = managed.parent / "victim" / "a.log"
    identity = identity_of(victim.stat()).replace(":", "-")
    (managed / f".deleting-{8:032x}-{identity}").symlink_to(victim)
    os.link(victim, managed / f".deleting-{7:032x}-{identity}")
    finish_deletions(LogPaths(managed=str(managed)))
    assert not any(path.with_name(name).exists() for path, name in zip(begun, names, strict=True))
    assert all(path.exists() for path in [*others, victim])
    managed.chmod(0o777)
    begun_again = (
        managed / f".deleting-{1:032x}-{identity_of((managed / 'c.log').stat()).replace(':', '-')}"
    )
    (managed / "c.log").rename(begun_again)
    finish_deletions(LogPaths(managed=str(managed)))
    assert begun_again.exists()
    managed.chmod(0o700)
    finish_deletions(LogPaths(managed=str(managed)))
    assert not begun_again.exists()
    finish_deletions(LogPaths(managed=str(managed / "no such directory")))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_logs_of_the_programs_user_are_deleted_and_those_of_others_are_not(managed: Path) -> None:
    paths = LogPaths(managed=str(managed))
    paths.share_with(_PROGRAMS, _PROGRAMS)
    (managed / "below").mkdir()
    os.chown(managed / "below", _PROGRAMS, _PROGRAMS)
    for name, owner in (("below/b.log", _PROGRAMS), ("other.log", _PROGRAMS + 1)):
        (managed / name).write_text(name)
        os.chown(managed / name, owner, owner)
        found = identity_of((managed / name).stat())
        answer = delete(paths, DeleteFile(path=str(managed / name), identity=found))
        assert (answer.failure is None) == (owner == _PROGRAMS)
    assert (managed / "other.log").exists()
    assert list((managed / "below").iterdir()) == []


_PROGRAMS = 12345
