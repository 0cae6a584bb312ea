"""The files of an installation: who can read them, and what a later command makes of them."""

import argparse
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.administration import installation
from controller_client.administration.installation import Installation


@pytest.fixture
def closed_umask() -> Iterator[None]:
    """The umask of a host where files of root are closed to everybody else."""
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root writes files for others")
@pytest.mark.usefixtures("closed_umask")
def test_a_daemon_can_read_its_configuration_whatever_the_umask(tmp_path: Path) -> None:
    file, nobody = tmp_path / "controller.toml", pwd.getpwnam("nobody")
    place = Installation(
        is_system=True, user=nobody.pw_name, state_dir=tmp_path / "state", config_file=file
    )
    installation.write(file, 'server = "https://h"\n', place)
    status = file.stat()
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (0, nobody.pw_gid, 0o640)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs for others")
def test_the_daemons_user_is_who_has_its_state_directory_wherever_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, named = tmp_path / "usual", tmp_path / "named"
    monkeypatch.setattr(installation, "SERVICE_STATE_DIR", usual)

    def user(state_dir: Path | None = None, **options: object) -> str:
        given = {"user": False, "config": None, "state_dir": state_dir, **options}
        return installation.find(argparse.Namespace(**given)).user

    assert (user(), user(named)) == ("holdline", "holdline")
    named.mkdir()
    os.chown(named, pwd.getpwnam("nobody").pw_uid, -1)
    assert (user(), user(named), user(named, run_as="daemon")) == ("holdline", "nobody", "daemon")
    # A disk that was mounted for it belongs to root, which makes nobody root.
    usual.mkdir()
    assert (user(), user(allow_root=True)) == ("holdline", "root")
