"""The unit and the property list that an installation gets."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest

from controller_client.administration import installation
from controller_client.administration.installation import Installation
from controller_client.administration.managers import UNIT, unit_text
from controller_client.errors import ConfigurationError

USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> Path:
        return Path("/bin/true")

    monkeypatch.setattr(installation, "command_path", found)


def _place(*, is_system: bool, user: str = USER) -> Installation:
    return Installation(
        is_system=is_system,
        user=user,
        state_dir=Path("/var/lib/holdline-controller"),
        config_file=Path("/etc/holdline/controller.toml" if is_system else "/home/x/c.toml"),
    )


def _settings(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return dict(line.split("=", 1) for line in lines)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes directories for others")
def test_a_directory_of_others_is_not_taken_for_the_state(tmp_path: Path) -> None:
    others = tmp_path / "others"
    others.mkdir(0o755)
    nobody = pwd.getpwnam("nobody")
    installation._make_state_directory(others, nobody)
    assert (others.stat().st_uid, others.stat().st_mode & 0o777) == (nobody.pw_uid, 0o700)
    taken = tmp_path / "taken"
    taken.mkdir(0o755)
    (taken / "file").touch()
    with pytest.raises(ConfigurationError, match="another user"):
        installation._make_state_directory(taken, nobody)
    assert (taken.stat().st_uid, taken.stat().st_mode & 0o777) == (0, 0o755)


def test_what_is_told_does_nothing_to_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    installation.say("bash \x1b]0;x\x07\nnext")
    assert capsys.readouterr().out == "bash \ufffd]0;x\ufffd\nnext\n"


def test_a_hosts_unit_has_its_user_and_lets_programs_live() -> None:
    unit = _settings(unit_text(_place(is_system=True), allow_sudo=False))
    assert unit["ExecStart"] == "/bin/true run"
    assert (unit["User"], unit["StateDirectory"]) == (USER, "holdline-controller")
    assert (unit["KillMode"], unit["NoNewPrivileges"]) == ("process", "yes")


def test_sudo_works_only_where_it_is_allowed() -> None:
    unit = unit_text(_place(is_system=True), allow_sudo=True)
    assert "NoNewPrivileges" not in _settings(unit)


def test_a_users_own_unit_names_its_configuration_and_no_user() -> None:
    unit = _settings(unit_text(_place(is_system=False), allow_sudo=False))
    assert unit["ExecStart"] == "/bin/true run --config /home/x/c.toml"
    assert not unit.keys() & {"User", "Group", "StateDirectory"}
    assert unit["WantedBy"] == "default.target"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
@pytest.mark.parametrize("is_system", [True, False])
def test_systemd_understands_the_unit(tmp_path: Path, is_system: bool) -> None:
    file = tmp_path / UNIT
    file.write_text(unit_text(_place(is_system=is_system), allow_sudo=False))
    verified = subprocess.run(
        ["systemd-analyze", "verify", *(() if is_system else ("--user",)), str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    # Versions before 254 ignore this one key, as the unit says.
    said = [line for line in verified.stderr.splitlines() if "DelegateSubgroup" not in line]
    assert [line for line in said if UNIT in line] == []
