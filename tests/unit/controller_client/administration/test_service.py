"""``service install`` and its kin: what they write, what they hand on, and what they say."""

import argparse
import os
import pwd
import sys
from pathlib import Path

import pytest

from controller_client.administration import installation, programs_user, service
from controller_client.administration.installation import find
from controller_client.administration.managers import Unmanaged
from controller_client.cli import main
from controller_client.config.errors import ConfigurationError
from controller_client.config.file import read_file

ROOT = Path(__file__).parents[4]
USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home of a user who installs for nobody else, on a host without a service manager."""
    for variable, place in (("XDG_CONFIG_HOME", "config"), ("XDG_STATE_HOME", "state")):
        monkeypatch.setenv(variable, str(tmp_path / place))
    monkeypatch.setattr(service, "manager_of", Unmanaged)
    return tmp_path


@pytest.fixture
def command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command of an installation, which leads to this checkout."""
    script = home / "holdline-controller"
    script.write_text(
        f'#!/bin/sh\ncd "{ROOT}" && exec {sys.executable} -m controller_client "$@"\n'
    )
    script.chmod(0o755)
    monkeypatch.setattr(installation, "command_path", lambda: script)


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


def test_a_path_of_the_callers_directory_is_configured_as_a_whole(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    (home / "own.toml").touch()
    for _ in range(2):
        assert install("--config", "own.toml", "--state-dir", "own") == 0
    assert f'state_dir = "{home}/own"\n' in (home / "own.toml").read_text()
    place = find(argparse.Namespace(user=True, action="x", config=Path("own.toml"), state_dir=None))
    assert place.config_file == home / "own.toml"


def test_a_second_run_says_which_options_the_configuration_decides(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install("--proxy", "http://ada:word@proxy.example:3128") == 0
    file = home / "config/holdline/controller.toml"
    before, _ = file.read_text(), capsys.readouterr()
    assert install("--proxy", "http://ada:word@proxy.example:3128") == 0
    assert "kept" not in capsys.readouterr().out
    assert install("--proxy", "http://ada:other@proxy.example:3128") == 0
    told = capsys.readouterr().out
    assert ("does not name this proxy" in told, "other" in told) == (True, False)
    assert install("--state-dir", str(home / "another")) == 78
    assert "change it there" in capsys.readouterr().err
    assert file.read_text() == before


def test_sudo_that_nothing_can_forbid_here_is_said(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(programs_user, "manager_of", Unmanaged)
    assert install() == 0
    assert "sudo can work" not in capsys.readouterr().out
    assert install("--no-allow-sudo") == 0
    assert "sudo can work" in capsys.readouterr().out


def test_a_purge_that_leaves_something_says_so_and_can_be_done_again(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert install() == 0
    state, configuration = home / "state/holdline-controller", home / "config/holdline"
    (state / "credential").touch(0o600)
    state.rename(home / "elsewhere")
    state.symlink_to(home / "elsewhere")
    monkeypatch.setattr(service, "_left", lambda _place: [])
    purge = ["service", "uninstall", "--user", "--purge"]
    assert main(purge) == 78
    told = capsys.readouterr()
    assert ("symbolic link" in told.err, "removed " in told.out) == (True, False)
    assert (configuration / "controller.toml").exists()
    state.unlink()
    (home / "elsewhere").rename(state)
    assert main(purge) == 0
    assert not state.exists()
    assert not configuration.exists()


def test_a_host_is_moved_to_another_server_only_by_its_configuration(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for server in ("https://h", "wss://h/ws/controller/", "https://h/", "HTTPS://h"):
        assert install("--server", server) == 0
    file = home / "config/holdline/controller.toml"
    before = file.read_text()
    capsys.readouterr()
    for server in ("https://other", "https://h:8443", "https://h/elsewhere/"):
        assert install("--server", server) == 78
        assert "names another server: https://h. To move this host" in capsys.readouterr().err
    assert file.read_text() == before


@pytest.mark.parametrize("server", ["http://10.0.0.1", "h", "", "https://h/?x", "ftp://h"])
def test_a_server_that_cannot_be_one_is_written_nowhere(home: Path, server: str) -> None:
    assert install("--server", server) == 78
    assert not (home / "config/holdline/controller.toml").exists()


def test_what_a_configuration_has_already_stays_in_front_of_nothing(home: Path) -> None:
    file = home / "config/holdline/controller.toml"
    file.parent.mkdir(parents=True)
    file.write_text("# by hand\nlabels = ['gpu']\n[limits]\nprocesses = 3\n")
    file.chmod(0o600)
    assert install() == 0
    found = read_file(file)
    assert (found["label"], found["max_processes"]) == (["gpu"], 3)
    assert found["server"] == "http://127.0.0.1:9"
    assert "# by hand\n" in file.read_text()


@pytest.mark.usefixtures("command")
def test_each_command_works_again_without_harm(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    state, configuration = home / "state/holdline-controller", home / "config/holdline"
    for _ in range(2):
        assert install() == 0
        assert "not enrolled yet" in capsys.readouterr().out
    written = (configuration / "controller.toml").read_text()
    (state / "credential").touch(0o600)
    (state / "credential").write_text("ctl_a_b")
    for action in ("stop", "uninstall", "uninstall"):
        assert main(["service", action, "--user"]) == 0
    # Neither of them takes away what an installation that comes later needs.
    assert (state / "credential").read_text() == "ctl_a_b"
    assert (configuration / "controller.toml").read_text() == written
    for _ in range(2):
        assert main(["service", "uninstall", "--user", "--purge"]) == 0
    assert not state.exists()
    assert not configuration.exists()
    assert main(["service", "status", "--user"]) == service.NOT_RUNNING


@pytest.mark.usefixtures("home", "command")
def test_a_code_is_not_used_by_a_host_that_is_enrolled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert install("--run-as", USER) == 0
    place = find(argparse.Namespace(user=True, action="x", config=None, state_dir=None))
    place.credential_file.touch(0o600)
    options = argparse.Namespace(code="enr_a_b", replace=False, name=None, label=None)
    capsys.readouterr()
    service._enrol(place, options)
    assert "the code is not used" in capsys.readouterr().out
    # With --replace the server is asked, and here nobody answers.
    options.replace = True
    with pytest.raises(ConfigurationError, match="server cannot be reached"):
        service._enrol(place, options)
    assert place.credential_file.exists()


@pytest.mark.usefixtures("command")
@pytest.mark.parametrize("name", ["ca.pem", "policy.toml", "stop", "notes"])
def test_a_purge_leaves_what_an_installation_did_not_write(home: Path, name: str) -> None:
    assert install() == 0
    other = home / "config/holdline" / name
    other.write_text("by hand")
    assert main(["service", "uninstall", "--user", "--purge"]) == 0
    # The copy of the authorities is the installation's.
    assert other.exists() == (name != "ca.pem")
    assert not (home / "config/holdline/controller.toml").exists()


def test_nobody_who_closes_the_question_has_agreed_to_end_sessions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def closed(_question: str) -> str:
        raise EOFError

    monkeypatch.setattr("builtins.input", closed)
    for stream in ("stdin", "stdout"):
        monkeypatch.setattr(f"sys.{stream}.isatty", lambda: True, raising=False)
    assert not service._is_agreed([])


def test_a_user_without_a_name_is_told_what_runs(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def unknown(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    assert main(["service", "status", "--user"]) == service.NOT_RUNNING
    assert main(["service", "install", "--user", "--run-as", str(os.geteuid())]) == 78
    assert f"this host has no user '{os.geteuid()}'" in capsys.readouterr().err


def test_the_daemon_of_a_package_is_upgraded_by_its_package(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert install() == 0
    monkeypatch.setattr("sys.prefix", "/usr/lib/holdline-controller/versions/1")
    assert main(["service", "upgrade", "--user"]) == 78
    assert "install a newer package" in capsys.readouterr().err
