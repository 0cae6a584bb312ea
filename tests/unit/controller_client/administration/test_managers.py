"""The directories of an installation, the unit that is kept up to date, and what is told."""

import os
import pwd
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from controller_client.administration import installation, managers
from controller_client.administration import unit as unit_module
from controller_client.administration.installation import Installation
from controller_client.administration.managers import Systemd, Unmanaged
from controller_client.administration.unit import UNIT, allows_sudo, unit_text
from controller_client.config.errors import ConfigurationError

PLACE = Installation(
    is_system=False,
    user=pwd.getpwuid(os.geteuid()).pw_name,
    state_dir=Path("/var/lib/holdline-controller"),
    config_file=Path("/home/x/c.toml"),
)


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
    assert capsys.readouterr().out == "bash \\u{001b}]0;x\\u{0007}\nnext\n"


@pytest.fixture
def unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of the unit. systemd is told nothing."""
    unit = tmp_path / "unit"
    monkeypatch.setattr(installation, "command_path", lambda: Path("/bin/true"))
    monkeypatch.setattr(Systemd, "_unit", property(lambda _self: unit))
    monkeypatch.setattr(managers, "_do", lambda *_command: None)
    monkeypatch.setattr(managers, "_runs", lambda _command: True)
    return unit


def _install_earlier(unit: Path, monkeypatch: pytest.MonkeyPatch, *, allow_sudo: bool) -> None:
    """Install the unit of a version that wrote another one."""
    deploy = unit.with_name("deploy")
    deploy.mkdir()
    text = (unit_module._DEPLOY / UNIT).read_text()
    (deploy / UNIT).write_text(text.replace("RestartSec=2", "RestartSec=5"))
    with monkeypatch.context() as patched:
        patched.setattr(unit_module, "_DEPLOY", deploy)
        Systemd(PLACE).install(allow_sudo=allow_sudo)


@pytest.mark.parametrize("allow_sudo", [True, False])
def test_a_start_writes_a_unit_of_another_version_anew(
    unit: Path, monkeypatch: pytest.MonkeyPatch, allow_sudo: bool
) -> None:
    wanted = unit_text(PLACE, allow_sudo=allow_sudo)
    _install_earlier(unit, monkeypatch, allow_sudo=allow_sudo)
    assert "RestartSec=5" in unit.read_text()
    Systemd(PLACE).start()
    assert unit.read_text() == wanted


def test_a_start_keeps_a_unit_that_was_changed_and_says_what_to_do(
    unit: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _install_earlier(unit, monkeypatch, allow_sudo=False)
    changed = unit.read_text().replace("LimitCORE=0", "LimitCORE=1")
    unit.write_text(changed)
    capsys.readouterr()
    Systemd(PLACE).start()
    assert unit.read_text() == changed
    told = capsys.readouterr().out
    assert ("changed by hand" in told, "service install" in told) == (True, True)
    # What this version wrote and a person changed lacks nothing: nothing is said.
    Systemd(PLACE).install(allow_sudo=False)
    unit.write_text(unit.read_text().replace("LimitCORE=0", "LimitCORE=1"))
    capsys.readouterr()
    Systemd(PLACE).start()
    assert ("LimitCORE=1" in unit.read_text(), capsys.readouterr().out) == (True, "")


def test_an_installation_that_does_not_say_so_changes_nothing_about_sudo(unit: Path) -> None:
    for said, holds in ((None, False), (True, True), (None, True), (False, False), (None, False)):
        Systemd(PLACE).install(allow_sudo=said)
        assert allows_sudo(unit.read_text()) == holds


@pytest.mark.parametrize("is_started", [True, False], ids=["start", "install"])
@pytest.mark.parametrize("kept", ["", "[Unit]", "LimitCORE"])
def test_a_unit_that_was_cut_off_is_written_anew_without_sudo(
    unit: Path, kept: str, is_started: bool
) -> None:
    Systemd(PLACE).install(allow_sudo=False)
    whole = unit.read_text()
    unit.write_text(whole[: whole.index(kept)])
    if is_started:
        Systemd(PLACE).start()
    else:
        Systemd(PLACE).install(allow_sudo=None)
    assert unit.read_text() == whole
    assert sorted(unit.parent.iterdir()) == [unit]


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_changed_unit_without_its_last_section_is_kept(
    unit: Path, has_mark: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    Systemd(PLACE).install(allow_sudo=True)
    whole = unit.read_text() if has_mark else unit.read_text().partition("\n")[2]
    kept = whole[: whole.index("[Install]")].replace("LimitCORE=0", "LimitCORE=1")
    unit.write_text(kept)
    capsys.readouterr()
    Systemd(PLACE).start()
    assert unit.read_text() == kept
    assert "changed by hand" in capsys.readouterr().out


def test_a_unit_with_blanks_about_its_last_section_is_not_cut(unit: Path) -> None:
    Systemd(PLACE).install(allow_sudo=False)
    unit.write_text(kept := unit.read_text().replace("[Install]", "  [Install] "))
    Systemd(PLACE).start()
    assert unit.read_text() == kept


def test_a_unit_that_is_not_utf8_is_one_that_was_changed(unit: Path) -> None:
    Systemd(PLACE).install(allow_sudo=True)
    unit.write_bytes(kept := b"# caf\xe9\n" + unit.read_bytes())
    Systemd(PLACE).start()
    assert unit.read_bytes() == kept
    Systemd(PLACE).install(allow_sudo=None)
    assert unit.read_text() == unit_text(PLACE, allow_sudo=True)


def test_a_start_does_not_unmask_the_service(unit: Path) -> None:
    unit.symlink_to("/dev/null")
    Systemd(PLACE).start()
    assert unit.readlink() == Path("/dev/null")


@pytest.mark.usefixtures("unit")
@pytest.mark.parametrize(
    ("line", "allows"),
    [
        ("NoNewPrivileges=true", False),
        ("NoNewPrivileges = YES", False),
        ("NoNewPrivileges=no", True),
        ("NoNewPrivileges=yes\nNoNewPrivileges=0", True),
        ("#NoNewPrivileges=yes", True),
    ],
)
def test_what_a_person_wrote_about_sudo_is_understood(line: str, allows: bool) -> None:
    text = unit_text(PLACE, allow_sudo=False).replace("NoNewPrivileges=yes", line)
    assert allows_sudo(text) == allows


def test_a_start_without_a_unit_of_ours_writes_none(unit: Path) -> None:
    Systemd(PLACE).start()
    assert not unit.exists()


@pytest.mark.skipif(sys.platform == "darwin", reason="launchd keeps daemons there")
def test_a_users_unit_is_not_passed_over_where_systemd_does_not_answer(
    unit: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managers, "_SYSTEMD", tmp_path)
    monkeypatch.setattr(managers.shutil, "which", lambda name: f"/usr/bin/{name}")
    assert isinstance(managers.manager_of(PLACE), Systemd)
    monkeypatch.setattr(managers, "_runs", lambda _command: False)
    assert isinstance(managers.manager_of(PLACE), Unmanaged)
    unit.touch()
    with pytest.raises(ConfigurationError, match="set XDG_RUNTIME_DIR="):
        managers.manager_of(PLACE)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as another user")
def test_nothing_of_roots_environment_is_shown_to_the_daemons_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROOTS_SECRET", "word")
    place = Installation(
        is_system=True, user="nobody", state_dir=tmp_path, config_file=tmp_path / "c.toml"
    )
    told = subprocess.run
    ran = []

    def noted(command: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        done = told(["env"], **options)
        ran.append((command[-1], done.stdout.decode()))
        return done

    monkeypatch.setattr(subprocess, "run", noted)
    Unmanaged(place).stop()
    ((path, environment),) = ran
    assert path == str(tmp_path / "keep-running")
    assert ("USER=nobody" in environment, "word" in environment) == (True, False)


_BEGINNING = """
import signal, sys
from pathlib import Path
from controller_client.server_link.host_identity import lock_state_dir
from controller_client.session_files.daemon_status import StatusFile
lock = lock_state_dir(Path(sys.argv[1]))
print(flush=True)
sys.stdin.read()
StatusFile(Path(sys.argv[1]), version="1", server="s")
signal.pause()
"""


@pytest.fixture
def beginning(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A daemon that has its directory, and tells its process when its input ends."""
    tmp_path.chmod(0o700)
    with subprocess.Popen(
        [sys.executable, "-c", _BEGINNING, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as daemon:
        assert daemon.stdout
        daemon.stdout.readline()
        yield daemon
        daemon.kill()


def test_a_daemon_that_has_not_told_its_process_yet_is_stopped(
    tmp_path: Path, beginning: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    until = managers.until

    def told_then(is_so: Callable[[], object], seconds: float) -> bool:
        if beginning.stdin and not beginning.stdin.closed:
            beginning.stdin.close()
        return until(is_so, seconds)

    monkeypatch.setattr(managers, "until", told_then)
    Unmanaged(replace(PLACE, state_dir=tmp_path)).stop()
    assert beginning.wait(30) == -signal.SIGTERM


def test_a_daemon_that_never_tells_its_process_is_named(
    tmp_path: Path, beginning: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(managers, "_TOLD_SECONDS", 0.1)
    with pytest.raises(ConfigurationError, match="does not tell its process"):
        Unmanaged(replace(PLACE, state_dir=tmp_path)).stop()
    assert beginning.poll() is None
