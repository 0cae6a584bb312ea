"""The doctor finds what is wrong with a host, in set-ups that are really broken."""

import os
import pwd
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.administration.doctor import host
from controller_client.session_files.daemon_status import DaemonStatus

CREDENTIAL = "ctl_abc123_" + "s" * 43
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    path = tmp_path / "state"
    path.mkdir(0o700)
    credential = path / "credential"
    credential.touch(0o600)
    credential.write_text(CREDENTIAL + "\n")
    return path


def _status(**changed: str | int) -> DaemonStatus:
    base = {"why": "", "pid": os.getpid(), "version": "1", "server": "s", "state": "connected"}
    return DaemonStatus(since=0.0, started=0.0, **{**base, **changed})


def test_a_host_in_order_has_no_problem(state_dir: Path) -> None:
    found = [
        host.check_state_dir(state_dir),
        host.check_credential(state_dir),
        host.check_stop(state_dir),
        host.check_daemon(_status()),
        host.check_evidence(),
        host.check_disk(state_dir),
    ]
    assert {finding.level for finding in found} <= {"ok", "warning"}
    assert found[0].level == found[1].level == found[3].level == "ok"


def test_a_python_that_others_cannot_run_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "closed" / "python3"
    own.parent.mkdir()
    own.touch(0o755)
    own.parent.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(own))
    found = host.check_python()
    assert (found.level, str(own.parent) in found.text) == ("warning", True)
    assert "/usr/bin/python3" in found.remedy


def test_a_credential_that_is_open_to_others_is_closed_and_not_replaced(state_dir: Path) -> None:
    file = state_dir / "credential"
    file.chmod(0o644)
    found = host.check_credential(state_dir)
    assert (found.level, found.remedy) == ("problem", f"chmod 600 {file}")
    subprocess.run(found.remedy.split(), check=True)
    assert host.check_credential(state_dir).level == "ok"


def test_each_fault_of_a_state_directory_has_its_remedy(tmp_path: Path) -> None:
    missing = host.check_state_dir(tmp_path / "none")
    assert (missing.level, "service install" in missing.remedy) == ("problem", True)
    opened = tmp_path / "opened"
    opened.mkdir()
    opened.chmod(0o755)
    found = host.check_state_dir(opened)
    assert (found.level, found.remedy) == ("problem", f"chmod 700 {opened}")
    file = tmp_path / "file"
    file.touch(0o600)
    assert host.check_state_dir(file).level == "problem"


@NEEDS_ROOT
def test_a_state_directory_of_another_user_is_found(state_dir: Path) -> None:
    os.chown(state_dir, 12345, 12345)
    found = host.check_state_dir(state_dir)
    assert (found.level, "sudo" in found.remedy) == ("problem", True)


def test_each_fault_of_a_credential_has_its_remedy(state_dir: Path) -> None:
    file = state_dir / "credential"
    file.chmod(0o644)
    assert "chmod 600" in host.check_credential(state_dir).text
    file.chmod(0o600)
    old = time.time() - 400 * 86400
    os.utime(file, (old, old))
    found = host.check_credential(state_dir)
    own = pwd.getpwuid(os.geteuid()).pw_name
    assert (found.level, found.remedy) == ("warning", f"sudo -u {own} holdline-controller rotate")
    file.unlink()
    found = host.check_credential(state_dir)
    assert (found.level, "--code" in found.remedy) == ("problem", True)


@NEEDS_ROOT
def test_a_remedy_has_the_number_of_a_user_without_a_name(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, user = state_dir / "credential", 54321
    with monkeypatch.context() as patched:
        patched.setattr(os, "geteuid", lambda: user)
        found = host.check_credential(state_dir)
        assert found.remedy == f"sudo chown {user} {file}"
        subprocess.run(found.remedy.split()[1:], check=True)
        os.utime(file, (0, 0))
        found = host.check_credential(state_dir)
    assert found.remedy == f"sudo -u '#{user}' holdline-controller rotate"


@pytest.mark.parametrize("name", ["stop", "stopped"])
def test_a_host_that_was_stopped_is_found(state_dir: Path, name: str) -> None:
    (state_dir / name).touch()
    found = host.check_stop(state_dir)
    assert (found.level, str(state_dir / name) in found.remedy) == ("problem", True)


def test_a_daemon_that_is_not_connected_says_why() -> None:
    assert "service start" in host.check_daemon(None).remedy
    found = host.check_daemon(_status(state="refused", why="the credential is revoked"))
    assert (found.level, found.remedy) == ("problem", "the credential is revoked")


@NEEDS_ROOT
def test_a_python_that_this_user_cannot_even_look_at_is_found(tmp_path: Path) -> None:
    own = tmp_path / "python3"
    own.touch(0o755)
    tmp_path.chmod(0o700)
    # Imported first: the other user may not be able to read the checkout.
    code = (
        "import os, sys; from controller_client.administration.doctor.host import check_python; "
        "os.setresuid(65534, 65534, 65534); sys.executable = sys.argv[1]; "
        "print(check_python().level)"
    )
    told = subprocess.run(
        [sys.executable, "-c", code, str(own)], capture_output=True, text=True, check=True
    )
    assert told.stdout == "warning\n"


@NEEDS_ROOT
def test_evidence_is_found_after_root_became_another_user() -> None:
    # Imported first: the other user may not be able to read the checkout.
    code = (
        "import os; from controller_client.administration.doctor.host import check_evidence; "
        "os.setresuid(65534, 65534, 65534); print(check_evidence().level)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == host.check_evidence().level


@pytest.fixture
def without_new_rights() -> Iterator[int]:
    """A process that cannot gain rights, as those of a unit with NoNewPrivileges=yes."""
    code = (
        "import ctypes, sys; ctypes.CDLL(None).prctl(38, 1, 0, 0, 0); print(flush=True); "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield process.pid
        process.communicate()


def test_a_service_under_which_sudo_cannot_work_is_found(
    without_new_rights: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sudo = tmp_path / "sudo"
    sudo.touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "--allow-sudo" in host.check_sudo(_status(pid=without_new_rights)).remedy
    assert host.check_sudo(_status()).text.startswith("can work")
    sudo.unlink()
    assert host.check_sudo(None).text == "not installed here"


@NEEDS_ROOT
def test_a_full_disk_is_found(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1M", "tmpfs", str(tmp_path)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode:
        pytest.skip("no file system can be mounted here")
    try:
        found = host.check_disk(tmp_path)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)
    assert (found.level, "no session can start" in found.remedy) == ("problem", True)


def test_a_daemon_without_a_control_group_is_told_what_brings_one() -> None:
    found = host.check_control_group(_status())
    assert found.level == "note"
    assert "systemd" in found.remedy
