"""Keys that a restore puts back into the files of the server."""

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from backup import keys


@pytest.mark.skipif(os.geteuid() != 0, reason="only root restores what is another user's")
def test_keys_that_root_puts_back_stay_the_servers(tmp_path: Path, settings: Any) -> None:
    nobody = pwd.getpwnam("nobody")
    settings.DATA_DIR, settings.SECRET_KEY = tmp_path, "old"
    for name in ("encryption_key", "secret_key"):
        (tmp_path / name).write_text("old\n")
        os.chown(tmp_path / name, nobody.pw_uid, nobody.pw_gid)
    assert len(keys.put_back(keys.Keys("new", ["new"]))) == 2
    for name, text in (
        ("encryption_key", "new\n"),
        ("encryption_key.before-restore", "old\n"),
        ("secret_key", "new\n"),
        ("secret_key.before-restore", "old\n"),
    ):
        status = (tmp_path / name).stat()
        assert (tmp_path / name).read_text() == text
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (
            nobody.pw_uid,
            nobody.pw_gid,
            0o600,
        )


def test_a_second_restore_keeps_what_the_first_one_has_kept(tmp_path: Path, settings: Any) -> None:
    settings.DATA_DIR, settings.SECRET_KEY = tmp_path, "login"
    (tmp_path / "encryption_key").write_text("own\n")
    for key in ("first", "second", "own", "first"):
        keys.put_back(keys.Keys("login", [key]))
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {
        "encryption_key": "first\n",
        "encryption_key.before-restore": "own\n",
        "encryption_key.before-restore-2": "first\n",
        "encryption_key.before-restore-3": "second\n",
    }
