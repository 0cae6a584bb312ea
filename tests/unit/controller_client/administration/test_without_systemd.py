"""A daemon that launchd keeps, or a shell in the background where no manager runs."""

import os
import plistlib
import pwd
import subprocess
from pathlib import Path

import pytest

from controller_client.administration import installation, managers
from controller_client.administration.installation import Installation
from controller_client.administration.managers import LABEL, Launchd, Unmanaged

USER = pwd.getpwuid(os.geteuid()).pw_name


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Installation:
    """An installation of this user's own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(installation, "command_path", lambda: Path("/opt/holdline/bin/hc"))
    state_dir = tmp_path / "state"
    state_dir.mkdir(0o700)
    return Installation(
        is_system=False, user=USER, state_dir=state_dir, config_file=tmp_path / "c.toml"
    )


@pytest.mark.parametrize("allow_sudo", [None, True, False])
def test_the_job_of_launchd_lets_programs_live_and_names_the_installation(
    place: Installation, tmp_path: Path, allow_sudo: bool | None
) -> None:
    file = tmp_path / f"Library/LaunchAgents/{LABEL}.plist"
    for _ in range(2):
        Launchd(place).install(allow_sudo=allow_sudo)
    job = plistlib.loads(file.read_bytes())
    assert job["Label"] == LABEL
    # Without it, launchd would end every program when the daemon ends.
    assert job["AbandonProcessGroup"] is True
    assert job["ProgramArguments"] == [
        "/opt/holdline/bin/hc",
        "run",
        "--config",
        f"{tmp_path}/c.toml",
    ]
    assert job["StandardErrorPath"] == str(place.state_dir / "daemon.log")
    # The job of a user is that user's.
    assert "UserName" not in job
    assert str(Launchd(place).log) == job["StandardErrorPath"]
    for _ in range(2):
        Launchd(place).remove()
        assert not file.exists()


def _kept_running(
    place: Installation, codes: list[int], *, until: int | None = None
) -> tuple[int, int]:
    """Return how often the shell ran a daemon that ends so, and the shell's own exit code."""
    keep, runs = place.state_dir / "keep-running", place.state_dir / "runs"
    keep.touch()
    tools = place.state_dir / "tools"
    tools.mkdir()
    # No pause between two runs.
    (tools / "sleep").write_text("#!/bin/sh\n")
    (tools / "sleep").chmod(0o755)
    daemon = tools / "daemon"
    cases = " ".join(f"{number}) exit {code};;" for number, code in enumerate(codes, 1))
    gone = f'[ $count = {until} ] && rm -f "{keep}"' if until else ":"
    daemon.write_text(
        f'#!/bin/sh\necho x >>"{runs}"\ncount=$(wc -l <"{runs}"); count=$((count))\n{gone}\n'
        f"case $count in {cases} esac\n"
    )
    daemon.chmod(0o755)
    ran = subprocess.run(
        ["/bin/sh", "-c", managers._AGAIN, str(keep), str(daemon)],
        check=False,
        timeout=60,
        env={"PATH": f"{tools}:/usr/bin:/bin"},
    )
    return len(runs.read_text().splitlines()), ran.returncode


@pytest.mark.parametrize("code", [0, 64, 78])
def test_a_daemon_that_a_restart_would_not_help_is_started_once(
    place: Installation, code: int
) -> None:
    assert _kept_running(place, [code, 0]) == (1, code)


def test_a_daemon_that_ends_otherwise_is_started_again(place: Installation) -> None:
    # As it fails, as its fork server ended, and as it is killed.
    assert _kept_running(place, [1, 75, 137, 141, 0]) == (5, 0)


def test_a_daemon_that_was_stopped_is_not_started_again(place: Installation) -> None:
    assert _kept_running(place, [1, 1, 1, 0], until=2)[0] == 2


def test_stopping_what_does_not_run_does_nothing(
    place: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        Unmanaged(place).stop()
    assert list(place.state_dir.iterdir()) == []
    Unmanaged(place).install(allow_sudo=None)
    assert "until the next boot" in capsys.readouterr().out
    Unmanaged(place).remove()
    assert list(place.state_dir.iterdir()) == []
