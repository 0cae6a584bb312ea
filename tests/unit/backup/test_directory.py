"""A backup is there whole or not at all, and only whole backups are counted and removed."""

import errno
import os
import pwd
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from backup import directory as backups
from backup import manifest
from backup.errors import BackupError
from tests.support.stack import PROJECT_ROOT


def _make(directory: Path, name: str) -> None:
    with backups.draft(directory, name) as draft:
        (draft / manifest.FILE).write_text("{}")


def _names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_a_disk_that_fills_leaves_no_half_backup(tmp_path: Path) -> None:
    def fail() -> None:
        with backups.draft(tmp_path, "holdline-20260101T000000Z") as draft:
            (draft / "database").write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space"):
        fail()
    assert _names(tmp_path) == []


def test_what_a_killed_process_left_goes_with_the_next_backup(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-holdline-20260101T000000Z").mkdir()
    _make(tmp_path, "holdline-20260102T000000Z")
    assert _names(tmp_path) == ["holdline-20260102T000000Z"]


def test_the_newest_backups_are_kept_and_nothing_else_is_touched(tmp_path: Path) -> None:
    days = [f"holdline-2026010{day}T000000Z" for day in range(1, 6)]
    for name in days:
        _make(tmp_path, name)
    (tmp_path / "holdline-20250101T000000Z").mkdir()
    (tmp_path / "mine").mkdir()
    assert backups.remove_old(tmp_path, 2, made=days[-1]) == days[:3]
    assert _names(tmp_path) == ["holdline-20250101T000000Z", *days[3:], "mine"]


def test_a_clock_that_went_ahead_does_not_remove_the_backup_just_made(tmp_path: Path) -> None:
    ahead = ["holdline-20310101T000000Z", "holdline-20310102T000000Z"]
    for name in (*ahead, "holdline-20260101T000000Z"):
        _make(tmp_path, name)
    assert backups.remove_old(tmp_path, 2, made="holdline-20260101T000000Z") == ahead[:1]
    assert _names(tmp_path) == ["holdline-20260101T000000Z", ahead[1]]


def test_what_cannot_be_removed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("holdline-20260101T000000Z", "holdline-20260102T000000Z"):
        _make(tmp_path, name)
    monkeypatch.setattr(shutil, "rmtree", lambda *_args, **_options: None)
    backups.remove_old(tmp_path, 1, made="holdline-20260102T000000Z")
    assert backups.left_over(tmp_path) == [".unfinished-holdline-20260101T000000Z"]


def test_two_backups_at_once_are_refused(tmp_path: Path) -> None:
    with (
        backups.locked(tmp_path),
        pytest.raises(BackupError, match="another backup or restore"),
        backups.locked(tmp_path),
    ):
        pass


def _looked_at_as_nobody(directory: Path, made: str) -> str:
    """What a user without rights removes of the directory, and says that it cannot."""
    directory.parent.chmod(0o755)
    look = (
        "import os, sys; from pathlib import Path; from backup import directory as d; "
        "os.chdir(sys.argv[1]); os.setuid(int(sys.argv[2])); at = Path('.'); "
        f"print(d.remove_old(at, 1, made={made!r}), d.of_others(at), "
        f"d.too_many(at, 1, made={made!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", look, directory, str(pwd.getpwnam("nobody").pw_uid)],
        capture_output=True,
        text=True,
        check=False,
        cwd=PROJECT_ROOT,
    )
    assert done.stderr == ""
    return done.stdout


def _give_to_nobody(*paths: Path) -> None:
    nobody = pwd.getpwnam("nobody")
    for path in paths:
        os.chown(path, nobody.pw_uid, nobody.pw_gid)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_a_backup_of_another_user_is_left_alone_and_named(tmp_path: Path) -> None:
    of_root, made = "holdline-20260101T000000Z", "holdline-20260102T000000Z"
    for name in (of_root, made):
        _make(tmp_path, name)
    _give_to_nobody(tmp_path, tmp_path / made)
    assert _looked_at_as_nobody(tmp_path, made) == f"[] ['{of_root}'] []\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_one_old_backup_that_may_not_go_keeps_no_other(tmp_path: Path) -> None:
    of_root, own, made = (f"holdline-2026010{day}T000000Z" for day in (1, 2, 3))
    for name in (of_root, own, made):
        _make(tmp_path, name)
    # Everybody may read what root has made, and in such a directory nobody else may rename it.
    (tmp_path / of_root).chmod(0o755)
    tmp_path.chmod(0o1777)
    _give_to_nobody(tmp_path / own, tmp_path / made)
    assert _looked_at_as_nobody(tmp_path, made) == f"['{own}'] [] ['{of_root}']\n"
    assert _names(tmp_path) == [of_root, made]


def test_a_name_that_is_a_link_is_neither_written_nor_read(tmp_path: Path) -> None:
    (other := tmp_path / "other").write_text("of another")
    (name := tmp_path / "name").symlink_to(other)
    with pytest.raises(FileExistsError), backups.fresh_file(name, like=other):
        pass
    with pytest.raises(BackupError, match="is a link"):
        backups.own_text(name)
    assert other.read_text() == "of another"
