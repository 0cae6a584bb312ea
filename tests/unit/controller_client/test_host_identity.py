"""Who the daemon says it is."""

from pathlib import Path
from uuid import UUID

import pytest

from controller_client.errors import AlreadyRunning, ConfigurationError
from controller_client.host_identity import host_identity, lock_state_dir


def test_the_instance_id_is_made_once_and_the_boot_id_comes_from_the_system(tmp_path: Path) -> None:
    first, second = host_identity(tmp_path), host_identity(tmp_path)
    assert first == second
    assert UUID(first.instance_id)
    assert first.boot_id
    assert first.hostname
    assert host_identity_of_another(tmp_path) != first.instance_id


def host_identity_of_another(tmp_path: Path) -> str:
    other = tmp_path / "other"
    other.mkdir()
    return host_identity(other).instance_id


def test_a_damaged_instance_id_is_refused_rather_than_replaced(tmp_path: Path) -> None:
    (tmp_path / "instance_id").write_text("not a uuid")
    with pytest.raises(ConfigurationError, match="instance_id"):
        host_identity(tmp_path)


def test_a_state_directory_has_one_daemon_at_a_time(tmp_path: Path) -> None:
    import os

    held = lock_state_dir(tmp_path)
    with pytest.raises(AlreadyRunning):
        lock_state_dir(tmp_path)
    os.close(held)
    os.close(lock_state_dir(tmp_path))
