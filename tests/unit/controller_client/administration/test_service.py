"""``service install`` and its kin: what they write, what they hand on, and what they say."""

import os
import pwd
from pathlib import Path

import pytest

from controller_client.administration import service
from controller_client.administration.managers import Unmanaged
from controller_client.cli import main

USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user who installs for nobody else, on a host without a service manager."""
    for variable, place in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(variable, str(tmp_path / place))
    monkeypatch.setattr(service, "manager_of", Unmanaged)
    return tmp_path


def install(*options: str) -> int:
    """Install for this user, also where that is root."""
    given = ["--user", "--run-as", USER, "--server", "http://127.0.0.1:9", *options]
    return main(["service", "install", *given])


def test_a_proxy_of_the_environment_is_configured_and_not_handed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDLINE_PROXY", "http://ada:word@proxy.example:3128")
    assert install() == 0
    assert (
        'proxy = "http://ada:word@proxy.example:3128"\n'
        in (home / "config/holdline/controller.toml").read_text()
    )
    assert "HOLDLINE_PROXY" not in os.environ
