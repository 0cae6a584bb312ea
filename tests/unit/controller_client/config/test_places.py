"""The usual places of a user's files, whatever the environment says of them."""

import os
import pwd
from pathlib import Path

import pytest

from controller_client.config import places
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import user_file
from controller_client.config.places import default_state_dir, prepare_state_dir, read_credential

VARIABLES = ("XDG_STATE_HOME", "XDG_CONFIG_HOME")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user of a host that has no service."""
    monkeypatch.setattr(places, "SERVICE_STATE_DIR", tmp_path / "none")
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_the_places_are_in_the_home_of_the_user(home: Path) -> None:
    assert default_state_dir() == home / ".local/state/holdline-controller"
    assert user_file() == home / ".config/holdline/controller.toml"


def test_the_environment_moves_them(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, str(home / variable))
    assert default_state_dir() == home / "XDG_STATE_HOME/holdline-controller"
    assert user_file() == home / "XDG_CONFIG_HOME/holdline/controller.toml"


@pytest.mark.parametrize("named", ["", "state", "./state", "~/state"])
def test_a_relative_one_counts_as_none(
    home: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    for variable in VARIABLES:
        monkeypatch.setenv(variable, named)
    assert default_state_dir() == home / ".local/state/holdline-controller"
    assert user_file() == home / ".config/holdline/controller.toml"


def test_a_user_without_a_home_has_places_where_nothing_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    monkeypatch.delenv("HOME")
    assert default_state_dir() == Path("/nonexistent/.local/state/holdline-controller")
    assert user_file() == Path("/nonexistent/.config/holdline/controller.toml")


def test_the_directory_of_the_service_is_its_users_own(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = home / "service"
    monkeypatch.setattr(places, "SERVICE_STATE_DIR", service)
    service.mkdir()
    assert default_state_dir() == service
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert default_state_dir() == home / ".local/state/holdline-controller"


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_a_state_directory_is_private_whatever_the_umask(home: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        assert prepare_state_dir(home / "a/b").stat().st_mode & 0o777 == 0o700
    finally:
        os.umask(before)


@pytest.mark.parametrize("mode", [0o710, 0o701, 0o740, 0o770])
def test_a_state_directory_that_others_could_use_is_refused(home: Path, mode: int) -> None:
    (home / "state").mkdir()
    (home / "state").chmod(mode)
    with pytest.raises(ConfigurationError, match="chmod 700"):
        prepare_state_dir(home / "state")
    assert (home / "state").stat().st_mode & 0o777 == mode


def test_a_state_directory_is_meant_from_where_the_caller_is(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert prepare_state_dir(Path("state")) == home / "state"


@pytest.mark.parametrize(
    "content", [b"ctl_a_b\0", b"ctl_a_b\0ctl_c_d", b"ctl__b", b"ctl_a_", b"CTL_a_b", b"\0"]
)
def test_what_is_almost_a_credential_is_none(home: Path, content: bytes) -> None:
    file = home / "credential"
    file.touch(0o600)
    file.write_bytes(content)
    with pytest.raises(ConfigurationError, match="ctl_<keyid>_<secret>") as refused:
        read_credential(file)
    assert content.decode() not in str(refused.value)


@pytest.mark.parametrize("more", [b"b" * 5000, b" " * 5000 + b"ctl_c_d", b"\n" * 4096 + b"x"])
def test_a_file_that_only_begins_with_a_credential_has_none(home: Path, more: bytes) -> None:
    file = home / "credential"
    file.touch(0o600)
    file.write_bytes(b"ctl_a_b" + more)
    with pytest.raises(ConfigurationError, match="ctl_<keyid>_<secret>"):
        read_credential(file)
    file.write_bytes(b"ctl_a_" + b"b" * 4090)
    assert len(read_credential(file)) == 4096


@pytest.mark.parametrize("content", [b"ctl_a_b", b"ctl_a_b\n", b"ctl_a_b\r\n", b" ctl_a_b \n\n"])
def test_a_credential_is_read_without_the_blanks_around_it(home: Path, content: bytes) -> None:
    file = home / "credential"
    file.touch(0o400)
    file.chmod(0o600)
    file.write_bytes(content)
    file.chmod(0o400)
    assert read_credential(file) == "ctl_a_b"
