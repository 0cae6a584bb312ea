"""The doctor says whom programs run as, and what keeps two users from working."""

import grp
import os
import pwd
from pathlib import Path

import pytest

from controller_client.administration.doctor import users
from controller_client.administration.doctor.finding import Finding
from controller_client.session_files.daemon_status import DaemonStatus
from controller_client.system.users import two_users
from controller_client.system.users.two_users import ProgramUser

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
NOBODY = pwd.getpwnam("nobody")


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of nobody's; programs run as ``daemon``."""
    path = tmp_path / "state"
    path.mkdir(0o700)
    os.chown(path, NOBODY.pw_uid, NOBODY.pw_gid)
    _write(path, '[users]\nrun_as = "daemon"\n')
    monkeypatch.setattr(users, "_UNITS", (tmp_path / "unit",))
    return path


def _write(state_dir: Path, text: str) -> None:
    policy = state_dir.parent / "policy.toml"
    policy.write_text(text)
    policy.chmod(0o600)


def _found(state_dir: Path, daemon: DaemonStatus | None = None) -> Finding:
    found, _ = users.examine_users(state_dir, state_dir.parent / "policy.toml", daemon)
    return found


def _daemon() -> DaemonStatus:
    return DaemonStatus(
        since=0.0,
        started=0.0,
        why="",
        pid=os.getpid(),
        version="1",
        server="s",
        state="connected",
    )


def test_one_user_is_said_and_root_is_warned_of(state_dir: Path) -> None:
    _write(state_dir, "")
    found = _found(state_dir)
    assert (found.level, "run as nobody" in found.text) == ("note", True)
    os.chown(state_dir, 0, 0)
    found = _found(state_dir)
    assert (found.level, "--run-as" in found.remedy) == ("warning", True)
    state_dir.rmdir()
    assert _found(state_dir).level == "note"


@pytest.mark.parametrize(
    ("policy", "text", "remedy"),
    [
        ('[users]\nrun_as = "no-such-user"', "no such user", "useradd"),
        ('[users]\nrun_as = "nobody"', "another user", "name another"),
        ('[users]\nrun_as = "root"', "another user", "name another"),
        ("[users]\nrun_as = 7", "run_as has to be a text", "correct the file"),
    ],
)
def test_a_user_that_cannot_be_is_found(
    state_dir: Path, policy: str, text: str, remedy: str
) -> None:
    _write(state_dir, policy)
    found = _found(state_dir)
    assert found.level == "problem"
    assert (text in found.text, remedy in found.remedy) == (True, True)


def test_a_daemon_without_the_rights_is_found(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = state_dir.parent / "unit"
    unit.write_text("[Service]\n#AmbientCapabilities=CAP_SETUID CAP_SETGID\n")
    found = _found(state_dir)
    assert (found.level, "service install" in found.remedy) == ("problem", True)
    monkeypatch.setattr(users, "_children", lambda _pid: [])
    found = _found(state_dir, _daemon())
    assert (found.level, "service start" in found.remedy) == ("problem", True)
    # A drop-in of an operator's counts, too.
    (state_dir.parent / "unit.d").mkdir()
    (state_dir.parent / "unit.d/own.conf").write_text(
        "[Service]\nAmbientCapabilities=CAP_SETGID CAP_SETUID\n"
    )
    assert _found(state_dir).level == "ok"
    # This process is root's: it has every right.
    monkeypatch.setattr(users, "_children", lambda _pid: [os.getpid()])
    assert _found(state_dir, _daemon()).level == "ok"


def _user(home: Path, monkeypatch: pytest.MonkeyPatch, *more: int) -> None:
    entry = pwd.struct_passwd(("daemon", "x", 54321, 54321, "", str(home), "/bin/sh"))
    user = ProgramUser("daemon", 54321, 54321, (54321, *more))
    real = pwd.getpwuid
    monkeypatch.setattr(users.ProgramUser, "named", lambda _name: user)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: entry if uid == 54321 else real(uid))


def test_a_home_that_programs_cannot_enter_is_found(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = state_dir.parent / "home"
    _user(home, monkeypatch)
    found = _found(state_dir)
    assert (found.level, "install -d" in found.remedy) == ("warning", True)
    home.mkdir(0o700)
    found = _found(state_dir)
    assert (found.level, "cannot enter" in found.text) == ("problem", True)


def test_a_user_in_the_daemons_group_is_warned_of(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _user(Path("/"), monkeypatch, NOBODY.pw_gid)
    found = _found(state_dir)
    group = grp.getgrgid(NOBODY.pw_gid).gr_name
    assert (found.level, found.remedy) == ("warning", f"gpasswd --delete daemon {group}")
    monkeypatch.setattr(grp, "getgrgid", lambda number: {}[number])
    found = _found(state_dir)
    assert (found.level, "usermod --gid" in found.remedy) == ("warning", True)


def test_users_without_an_entry_are_told_by_number(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])
    found = _found(state_dir)
    assert (found.level, f"daemon as user {NOBODY.pw_uid}" in found.text) == ("ok", True)


def test_the_mode_of_a_directory_says_who_may_enter(tmp_path: Path) -> None:
    user = ProgramUser("someone", 54321, 54321, (54321,))
    for owner, group, mode, may in (
        (54321, 0, 0o700, True),
        (54321, 0, 0o677, False),
        (0, 54321, 0o710, True),
        (0, 54321, 0o701, False),
        (0, 0, 0o701, True),
        (0, 0, 0o770, False),
    ):
        os.chown(tmp_path, owner, group)
        tmp_path.chmod(mode)
        assert two_users.may_enter(user, tmp_path) is may, oct(mode)


def test_sudo_that_the_policy_forbids_is_said(state_dir: Path) -> None:
    if not any(Path(place, "sudo").exists() for place in os.environ["PATH"].split(":")):
        pytest.skip("needs sudo")
    _, sudo = users.examine_users(state_dir, state_dir.parent / "policy.toml", None)
    assert "may_change" in sudo.text
