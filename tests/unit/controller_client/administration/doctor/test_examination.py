"""The whole examination: what is looked at, what is told of it, and the exit code."""

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controller_client.administration.doctor import host, users
from controller_client.cli import main
from controller_client.policy import file as policy_file
from controller_client.server_link.host_identity import lock_state_dir
from controller_client.session_files.daemon_status import DaemonStatus, StatusFile
from tests.unit.controller_client.administration.doctor.servers import serving

CREDENTIAL = "ctl_abc123_" + "s" * 43
ROOT = Path(__file__).parents[5]
# What the documentation names, in its order, by the checks of a server that is reached.
LOOKED_AT = {
    "python": "Python",
    "configuration": "configuration",
    "state": "state directory",
    "credential": "credential and its age",
    "stop": "kill switch",
    "dns": "name of the server",
    "server": "proxy",
    "tls": "TLS",
    "health": "health",
    "clock": "clock of the server",
    "websocket": "the upgrade to a WebSocket",
    "daemon": "the daemon",
    "cgroup": "control groups",
    "evidence": "what the kernel tells of programs",
    "users": "whom programs run as",
    "sudo": "sudo",
    "logs": "log directories",
    "disk": "disk",
}


class Host:
    """A host with a state directory and a configuration."""

    def __init__(self, home: Path) -> None:
        self.state_dir, self.file = home / "state", home / "controller.toml"
        self.state_dir.mkdir(0o700)
        self.credential = self.state_dir / "credential"
        self.credential.touch(0o600)
        self.credential.write_text(CREDENTIAL + "\n")
        self.configure('server = "http://127.0.0.1:9"')

    def configure(self, text: str) -> None:
        """Write the configuration."""
        self.file.write_text(text + "\n")
        self.file.chmod(0o600)

    def command(self, *more: str) -> list[str]:
        """The command that looks at this host."""
        return ["doctor", "--config", str(self.file), "--state-dir", str(self.state_dir), *more]


@pytest.fixture
def patient(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host that nothing of this machine's own has a part in."""
    for module in (users, policy_file):
        monkeypatch.setattr(module, "SYSTEM_FILE", tmp_path / "policy.toml")
    return Host(tmp_path)


@pytest.fixture
def daemon(patient: Host) -> Iterator[StatusFile]:
    """A daemon of that host, which this process plays."""
    lock = lock_state_dir(patient.state_dir)
    yield StatusFile(patient.state_dir, version="1", server="s")
    os.close(lock)


def _examined(
    patient: Host, capsys: pytest.CaptureFixture[str]
) -> tuple[int, dict[str, dict[str, Any]]]:
    code = main(patient.command("--json"))
    found = json.loads(capsys.readouterr().out)
    assert all(one.keys() == {"check", "level", "text", "remedy"} for one in found)
    for one in found:
        assert one["level"] in {"ok", "note", "warning", "problem"}
        # Each line of a fault names the remedy.
        assert (one["level"] not in {"warning", "problem"}) or one["remedy"], one
    return code, {one["check"]: one for one in found}


def test_everything_that_the_documentation_names_is_looked_at(
    patient: Host, daemon: StatusFile, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.tell("connected")
    with serving() as port:
        patient.configure(f'server = "http://127.0.0.1:{port}"')
        code, found = _examined(patient, capsys)
    assert list(found) == list(LOOKED_AT)
    page = " ".join((ROOT / "docs/howto/run-a-controller.md").read_text().split())
    (said,) = re.findall(r"`doctor` looks at (.+?)\. Each line", page)
    places = [said.index(words) for words in LOOKED_AT.values()]
    assert places == sorted(places)
    # Warnings are no reason to fail: nothing of them keeps the host from working.
    assert (code, found["daemon"]["level"]) == (0, "ok")


def test_lines_and_json_tell_the_same(patient: Host, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(patient.command()) == 1
    lines = capsys.readouterr().out
    _, found = _examined(patient, capsys)
    for one in found.values():
        # The age of a credential, say, is the same a moment later.
        assert one["check"] in lines
        assert not one["remedy"] or f"-> {one['remedy']}\n" in lines


@pytest.mark.parametrize(
    ("text", "check", "said"),
    [
        ("", "server", "no server is named"),
        ('server = "ws://10.0.0.1/"', "server", "unencrypted"),
        ('server = "http://127.0.0.1:9/\u00e9/"', "server", "in ASCII"),
        ('server = "http://127.0.0.1:9"', "server", "127.0.0.1:9 does not answer"),
        ('server = "https://h"\nca_file = "/nonexistent"', "server", "--ca-file"),
        ('sever = "https://h"', "configuration", "Did you mean server?"),
        ("server =", "configuration", "cannot be used"),
    ],
)
def test_a_fault_of_the_configuration_is_one_finding_of_many(
    patient: Host, capsys: pytest.CaptureFixture[str], text: str, check: str, said: str
) -> None:
    patient.configure(text)
    code, found = _examined(patient, capsys)
    assert (code, found[check]["level"]) == (1, "problem")
    assert said in found[check]["text"]
    # What comes after it is looked at all the same.
    assert found["disk"]["level"] in {"ok", "warning"}


def test_a_host_without_anything_is_told_everything(
    patient: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    patient.file.unlink()
    patient.credential.unlink()
    patient.state_dir.rmdir()
    code, found = _examined(patient, capsys)
    wrong = {check for check, one in found.items() if one["level"] == "problem"}
    assert (code, wrong) == (1, {"configuration", "state", "credential", "daemon", "disk"})


@pytest.mark.parametrize(
    ("state", "why", "remedy"),
    [
        ("connecting", "", "again in a moment"),
        ("refused", "the credential is revoked", "the credential is revoked"),
        ("refused", "", "holdline-controller logs"),
        ("unreachable", "connection refused", "see the lines above"),
    ],
)
def test_a_daemon_that_is_not_connected_is_a_problem_with_a_remedy(
    state: Any, why: str, remedy: str
) -> None:
    status = DaemonStatus(
        state=state, since=0.0, why=why, pid=1, started=0.0, version="1", server="s"
    )
    found = host.check_daemon(status)
    assert (found.level, remedy in found.remedy) == ("problem", True)


def test_a_credential_of_another_kind_is_not_closed_but_removed(patient: Host) -> None:
    patient.credential.rename(patient.state_dir / "elsewhere")
    for put in (
        lambda: patient.credential.symlink_to(patient.state_dir / "elsewhere"),
        lambda: patient.credential.mkdir(0o755),
        lambda: os.mkfifo(patient.credential, 0o644),
    ):
        put()
        found = host.check_credential(patient.state_dir)
        assert (found.level, "chmod" in found.remedy) == ("problem", False)
        assert f"remove {patient.credential}, and enrol with a code" in found.remedy
        if patient.credential.is_dir():
            patient.credential.rmdir()
        else:
            patient.credential.unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_credential_of_another_user_is_given_back(patient: Host) -> None:
    os.chown(patient.credential, 1, 1)
    found = host.check_credential(patient.state_dir)
    assert (found.level, found.remedy) == ("problem", f"sudo chown root {patient.credential}")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root acts as another user")
def test_what_another_user_may_not_look_at_is_not_called_missing(
    patient: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    patient.state_dir.parent.chmod(0o700)
    # The first examination imports modules, which the other user may not read everywhere.
    _examined(patient, capsys)
    os.seteuid(65534)
    try:
        code, found = _examined(patient, capsys)
    finally:
        os.seteuid(0)
    assert code == 1
    for check in ("state", "credential", "daemon", "users"):
        assert found[check]["remedy"] == host.AS_OWNER, check
    for check in ("daemon", "users"):
        assert found[check]["text"].startswith("not known"), check
