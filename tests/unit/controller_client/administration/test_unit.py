"""The systemd unit that an installation gets."""

import grp
import os
import pwd
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from controller_client.administration import installation
from controller_client.administration import unit as unit_module
from controller_client.administration.installation import Installation
from controller_client.administration.unit import UNIT, grants_rights, is_ours, unit_text
from controller_client.config.errors import ConfigurationError

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


def test_a_hosts_unit_has_its_user_and_lets_programs_live() -> None:
    unit = _settings(unit_text(_place(is_system=True), allow_sudo=False))
    assert unit["ExecStart"] == "/bin/true run"
    assert (unit["User"], unit["StateDirectory"]) == (USER, "holdline-controller")
    assert (unit["KillMode"], unit["NoNewPrivileges"]) == ("process", "yes")


def test_a_group_without_a_name_stands_in_the_unit_by_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(grp, "getgrgid", lambda number: {}[number])
    unit = _settings(unit_text(_place(is_system=True), allow_sudo=False))
    assert (unit["User"], unit["Group"]) == (USER, str(pwd.getpwnam(USER).pw_gid))


def test_sudo_works_only_where_it_is_allowed() -> None:
    unit = unit_text(_place(is_system=True), allow_sudo=True)
    assert "NoNewPrivileges" not in _settings(unit)


def test_a_users_own_unit_names_its_configuration_and_no_user() -> None:
    unit = _settings(unit_text(_place(is_system=False), allow_sudo=False))
    assert unit["ExecStart"] == "/bin/true run --config /home/x/c.toml"
    assert not unit.keys() & {"User", "Group", "StateDirectory"}
    assert unit["WantedBy"] == "default.target"


def test_a_path_with_a_blank_is_one_word_to_systemd() -> None:
    place = replace(_place(is_system=False), config_file=Path('/home/x y/50% "c"\\.toml'))
    unit = _settings(unit_text(place, allow_sudo=False))
    assert unit["ExecStart"] == '/bin/true run --config "/home/x y/50%% \\"c\\"\\\\.toml"'


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("plain", "/plain/c.toml"),
        ("${HOME}", "/$${HOME}/c.toml"),
        ("$HOME", "/$$HOME/c.toml"),
        ("a$$b", "/a$$$$b/c.toml"),
        ("%h", '"/%%h/c.toml"'),
        ("tab\there", '"/tab\there/c.toml"'),
        ("it's", '"/it\'s/c.toml"'),
        ("\u00e9", "/\u00e9/c.toml"),
    ],
)
def test_systemd_finds_no_variable_and_no_specifier_in_a_path(name: str, written: str) -> None:
    place = replace(_place(is_system=False), config_file=Path(f"/{name}/c.toml"))
    unit = _settings(unit_text(place, allow_sudo=False))
    assert unit["ExecStart"] == f"/bin/true run --config {written}"


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


@pytest.fixture
def two_users(tmp_path: Path) -> Installation:
    """A host whose configuration names a policy with another user for programs."""
    policy = tmp_path / "policy.toml"
    policy.write_text('[users]\nrun_as = "nobody"\n')
    policy.chmod(0o600)
    config = tmp_path / "c.toml"
    config.write_text(f'policy = "{policy}"\n')
    config.chmod(0o600)
    return replace(_place(is_system=True), config_file=config)


@pytest.mark.skipif(os.geteuid() != 0, reason="the policy has to be root's")
def test_only_a_policy_with_another_user_gives_the_daemon_rights(two_users: Installation) -> None:
    unit = unit_text(two_users, allow_sudo=False)
    assert _settings(unit)["AmbientCapabilities"] == "CAP_SETUID CAP_SETGID"
    assert (grants_rights(unit), is_ours(unit)) == (True, True)
    own = unit_text(replace(two_users, is_system=False), allow_sudo=False)
    assert "AmbientCapabilities" not in _settings(own)
    two_users.config_file.with_name("policy.toml").write_text("")
    unit = unit_text(two_users, allow_sudo=False)
    assert ("AmbientCapabilities" in _settings(unit), grants_rights(unit)) == (False, False)


@pytest.mark.parametrize(
    ("lines", "grants"),
    [
        ("AmbientCapabilities = CAP_SETGID CAP_SETUID", True),
        ("AmbientCapabilities=CAP_SETUID\nAmbientCapabilities=CAP_SETGID", True),
        ("AmbientCapabilities=~CAP_SETUID CAP_SETGID", False),
        ("#AmbientCapabilities=CAP_SETUID CAP_SETGID", False),
    ],
)
def test_rights_are_found_however_a_person_wrote_them(lines: str, grants: bool) -> None:
    assert grants_rights(f"[Service]\n{lines}\n") == grants


@pytest.mark.skipif(os.geteuid() != 0, reason="the policy has to be root's")
def test_a_policy_that_programs_may_have_written_gives_no_rights(
    two_users: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    policy = two_users.config_file.with_name("policy.toml")
    os.chown(policy, pwd.getpwnam("nobody").pw_uid, -1)
    with pytest.raises(ConfigurationError, match="belong to root"):
        unit_text(two_users, allow_sudo=False)
    # Nor does the policy of the state directory, even as root's.
    os.chown(policy, 0, -1)
    two_users.config_file.write_text("")
    monkeypatch.setattr(unit_module, "SYSTEM_FILE", tmp_path / "none")
    place = replace(two_users, state_dir=tmp_path)
    assert "AmbientCapabilities" not in _settings(unit_text(place, allow_sudo=False))
