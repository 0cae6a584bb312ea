"""The files of an installation: who can read them, and what a later command makes of them."""

import argparse
import os
import pwd
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.administration import installation
from controller_client.administration.installation import Installation
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import read_file

CERTIFICATE = """-----BEGIN CERTIFICATE-----
MIIBbjCCARWgAwIBAgIUQ6hWVTLhIvB6bDaUthg+Fr3oXS8wCgYIKoZIzj0EAwIw
DDEKMAgGA1UEAwwBeDAgFw0yNjExMjYyMTEwMDhaGA8yMTI2MTEwMjIxMTAwOFow
DDEKMAgGA1UEAwwBeDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABO88HpKnmKZ6
XJcHePqAk4BCpIKo7ssp4kX/tf2GJSUm4R137PTLzOtNv+VaOFyhlxcfvMvUHnJp
wQYLxy+Ec8ejUzBRMB0GA1UdDgQWBBSkedBJbjaOsf/oQEsp83cFo0wWNjAfBgNV
HSMEGDAWgBSkedBJbjaOsf/oQEsp83cFo0wWNjAPBgNVHRMBAf8EBTADAQH/MAoG
CCqGSM49BAMCA0cAMEQCIF7Vtk4CwLEjSqGc3eEFCVPXjy5xgLsCxGMyChYdNPzq
AiA+xH8jm2Uiwi3B/5Y1Fyn5wKpPG4Y41KwArklMko0liw==
-----END CERTIFICATE-----
"""


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
def test_policy_and_stop_file_are_in_a_directory_that_is_roots(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, state, nobody = tmp_path / "etc/x.toml", tmp_path / "state", pwd.getpwnam("nobody")
    monkeypatch.setattr(installation, "SYSTEM_FILE", file)
    (tmp_path / "etc").mkdir(mode=0o777)
    os.chown(tmp_path / "etc", nobody.pw_uid, nobody.pw_gid)
    installation.make(
        Installation(is_system=True, user="nobody", state_dir=state, config_file=file)
    )
    made = {
        place.name: (status.st_uid, status.st_gid, status.st_mode & 0o777)
        for place in (file.parent, state)
        for status in (place.stat(),)
    }
    # Whoever owns a directory can remove the files of others in it.
    assert made == {
        "etc": (0, nobody.pw_gid, 0o750),
        "state": (nobody.pw_uid, nobody.pw_gid, 0o700),
    }


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


@pytest.mark.parametrize("name", ["plain", 'a "quoted" \\ one', "\U0001f600", "del\x7f", "é\n"])
def test_a_configuration_can_be_read_whatever_its_names(tmp_path: Path, name: str) -> None:
    file, user = tmp_path / "c.toml", pwd.getpwuid(os.geteuid()).pw_name
    place = Installation(is_system=False, user=user, state_dir=tmp_path / name, config_file=file)
    options = argparse.Namespace(server="https://h", ca_file=None, proxy=None)
    installation.write_configuration(place, options)
    assert read_file(file)["state_dir"] == tmp_path / name


def test_a_name_that_is_not_utf8_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    file, user = tmp_path / "c.toml", pwd.getpwuid(os.geteuid()).pw_name
    state_dir = tmp_path / os.fsdecode(b"\xff")
    place = Installation(is_system=False, user=user, state_dir=state_dir, config_file=file)
    options = argparse.Namespace(server="https://h", ca_file=None, proxy=None)
    with pytest.raises(ConfigurationError, match="is not UTF-8"):
        installation.write_configuration(place, options)
    assert not file.exists()


def test_a_host_without_useradd_is_told_to_make_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ConfigurationError, match="make the user holdline-nobody yourself"):
        installation.make_user("holdline-nobody")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root installs for others")
def test_replaced_authorities_are_copied_again_whatever_their_comments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = Installation(
        is_system=True, user="nobody", state_dir=tmp_path, config_file=tmp_path / "c.toml"
    )
    monkeypatch.setattr(installation, "SERVICE_STATE_DIR", tmp_path)
    authorities = tmp_path / "own.pem"
    options = argparse.Namespace(server="https://h", ca_file=authorities, proxy=None)
    for text in (CERTIFICATE.encode(), "# Autorité\n".encode("latin-1") + CERTIFICATE.encode()):
        authorities.write_bytes(text)
        installation.write_configuration(place, options)
        assert (tmp_path / "ca.pem").read_bytes() == text.replace(b"\xe9", b"")
