"""The files of an installation: who can read them, and what a later command makes of them."""

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
