"""At its start a daemon warns of places it cannot use and of places that programs can write."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.accounts import Account, host_libraries, interpreter_for, ordinary_user
from tests.support.hosts.daemon_process import ROOT
from tests.support.hosts.scripted_server import CREDENTIAL
from tests.support.waiting import wait_until

SECONDS = 90
NO_LOG = (
    "no log in {} can be monitored: {}. Remedy: --log-root (log_roots) names it: correct it, or "
    "name another, and start the daemon again"
)
REPLACED = "programs of sessions can replace the policy file {}: keep it in a directory of root's"
REACHED = "programs of sessions can reach every place of the kill switch"
# The daemon's command line, with the policy file that its first argument names in the place of the
# machine's own: a test must not depend on /etc/holdline of this machine.
LAUNCHER = """
import sys
from pathlib import Path
from controller_client.policy import file
file.SYSTEM_FILE = Path(sys.argv.pop(1))
from controller_client.cli import console
console()
"""


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    with ordinary_user("w") as made:
        yield made


@pytest.fixture
def top() -> Iterator[Path]:
    """A directory that every user can enter."""
    with TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        yield Path(made)


def _warnings(top: Path, *options: str, account: Account | None = None) -> list[str]:
    """Start a daemon and return the warnings that it logs before its first attempt to connect.

    ``top/etc`` stands for /etc/holdline. The daemon runs as ``account``, or as the test's own user.
    """
    state, credential, log = top / "state", top / "credential", top / "daemon.log"
    state.mkdir(mode=0o700, exist_ok=True)
    credential.write_text(CREDENTIAL)
    credential.chmod(0o600)
    command, environment = [sys.executable], {"PYTHONPATH": str(ROOT)}
    if account is not None:
        for path in (state, credential):
            os.chown(path, account.uid, account.gid)
        command = [*account.as_user, interpreter_for(account)]
        environment = {"PYTHONPATH": str(host_libraries())}
    command += [
        "-c",
        LAUNCHER,
        str(top / "etc/policy.toml"),
        "run",
        "--server",
        "ws://127.0.0.1:1/ws/controller/",
        "--allow-root",
    ]
    command += ["--credential-file", str(credential), "--state-dir", str(state), *options]
    with log.open("wb") as stderr:
        daemon = subprocess.Popen(
            command, stderr=stderr, cwd="/", env={"PATH": os.defpath, "HOME": "/", **environment}
        )
    try:
        wait_until(
            lambda: "next attempt" in log.read_text() or daemon.poll() is not None,
            SECONDS,
            "the daemon to try to connect",
        )
    finally:
        daemon.terminate()
        daemon.wait()
    assert "next attempt" in log.read_text(), log.read_text()
    records = [json.loads(line) for line in log.read_text().splitlines()]
    return [record["message"] for record in records if record["level"] == "warning"]


def test_log_directories_that_cannot_be_used_are_named_with_the_reason(top: Path) -> None:
    (top / "a file").touch()
    (top / "logs").mkdir()
    options = ["--session-logs", str(top / "managed")]
    for name in ("logs", "gone", "a file"):
        options += ["--log-root", str(top / name)]
    said = [line for line in _warnings(top, *options) if "monitored" in line]
    assert said[0] == NO_LOG.format(top / "gone", "it does not exist")
    assert said[1] == NO_LOG.format(top / "a file", "it is a file or a link, not a directory")
    assert [line.split(":")[0] for line in said[1:]] == [
        f"no log in {top / 'a file'} can be monitored"
    ]


def test_log_directories_that_are_closed_or_foreign_are_named(top: Path, account: Account) -> None:
    (top / "closed").mkdir(mode=0o700)
    (top / "foreign").mkdir(mode=0o777)
    os.chown(top / "foreign", account.uid + 1, account.gid + 1)
    said = _warnings(
        top,
        "--session-logs",
        str(top / "foreign"),
        "--log-root",
        str(top / "closed"),
        account=account,
    )
    assert NO_LOG.format(top / "closed", "the daemon's user cannot use this log directory") in said
    assert any(line.startswith(f"no log in {top / 'foreign'} can be monitored: ") for line in said)


def test_a_log_directory_in_which_everybody_can_exchange_logs_is_named(top: Path) -> None:
    (top / "logs").mkdir()
    (top / "logs").chmod(0o777)
    options = ["--session-logs", str(top / "managed"), "--log-root", str(top / "logs")]
    (said,) = [line for line in _warnings(top, *options) if "exchange" in line]
    assert str(top / "logs") in said
    assert said.endswith(f"which --log-root (log_roots) names. Remedy: chmod o-w {top / 'logs'}")


def test_a_policy_file_that_programs_can_replace_is_named(top: Path) -> None:
    (top / "state").mkdir(mode=0o700)
    policy = top / "state/policy.toml"
    policy.write_text("")
    policy.chmod(0o600)
    assert REPLACED.format(policy) in _warnings(top, "--session-logs", str(top / "managed"))


def test_a_policy_file_in_a_directory_of_root_gets_no_warning(top: Path, account: Account) -> None:
    policy = top / "policy.toml"
    policy.write_text("")
    policy.chmod(0o644)
    said = _warnings(
        top, "--policy", str(policy), "--session-logs", str(top / "managed"), account=account
    )
    assert [line for line in said if "policy file" in line] == []


def test_a_kill_switch_that_programs_can_reach_gets_a_warning(top: Path, account: Account) -> None:
    said = _warnings(top, "--session-logs", str(top / "managed"), account=account)
    assert [line for line in said if line.startswith(REACHED)] == [
        f"{REACHED}: make {top / 'etc'}, owned by root"
    ]


def test_a_kill_switch_in_a_directory_of_root_s_is_out_of_reach(
    top: Path, account: Account
) -> None:
    (top / "etc").mkdir(mode=0o755)
    said = _warnings(top, "--session-logs", str(top / "managed"), account=account)
    assert [line for line in said if line.startswith(REACHED)] == []


@pytest.mark.parametrize("limit", [8, 10])
def test_a_limit_of_open_files_that_is_too_low_is_told(top: Path, limit: int) -> None:
    credential = top / "credential"
    credential.write_text(CREDENTIAL)
    credential.chmod(0o600)
    run = [sys.executable, "-m", "controller_client", "run", "--config", "off", "--allow-root"]
    run += ["--server", "ws://127.0.0.1:1/", "--credential-file", str(credential)]
    run += ["--state-dir", str(top / "state"), "--session-logs", str(top / "managed")]
    ran = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -n {limit}; exec "$@"', "sh", *run],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 78
    assert f"the limit of open files is {limit} (RLIMIT_NOFILE)" in ran.stderr.splitlines()[-1]
    assert "Traceback" not in ran.stderr
