"""ssh into a loopback sshd: the host key question, the password, the far shell."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.accounts import Account, ordinary_user, requires, requires_root
from tests.support.ports import free_port
from tests.support.stack import Stack
from tests.support.waiting import wait_until

_CONFIGURATION = """
Port {port}
ListenAddress 127.0.0.1
HostKey {directory}/host_key
PidFile none
PasswordAuthentication yes
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
"""


@dataclass(frozen=True)
class FarHost:
    """An sshd and the account that may log in."""

    port: int
    account: Account

    @property
    def command(self) -> str:
        """The command line that logs in with nothing remembered."""
        options = f"-p {self.port} -o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o PubkeyAuthentication=no"
        return f"ssh {options} {self.account.name}@127.0.0.1"


def _listens(port: int) -> bool:
    return f":{port:04X} " in "".join(line.split(" st ")[0] for line in Path("/proc/net/tcp").read_text().splitlines(keepends=True))


@pytest.fixture(scope="module")
def far_host() -> Iterator[FarHost]:
    """A running sshd with a host key of its own."""
    requires_root()
    requires("ssh", "sshd", "ssh-keygen")
    directory = Path(tempfile.mkdtemp(prefix="holdline-sshd-"))
    port = free_port()
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "host_key")], check=True)
    (directory / "sshd_config").write_text(_CONFIGURATION.format(port=port, directory=directory))
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
    assert program is not None
    with ordinary_user("f") as account:
        server = subprocess.Popen([program, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=subprocess.DEVNULL)
        try:
            wait_until(lambda: _listens(port), 30, "sshd to listen")
            yield FarHost(port, account)
        finally:
            server.terminate()
            server.wait(10)
            shutil.rmtree(directory, ignore_errors=True)


async def test_host_key_question_then_password_then_a_command_in_the_far_shell(stack: Stack, far_host: FarHost) -> None:
    async with stack.caller() as caller, caller.terminal(far_host.command) as session:
        assert (session.result["state"], session.kind) == ("awaiting_input", "line")
        assert "fingerprint" in session.result["output"]
        await session.send("yes\n")
        assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
        await session.send(far_host.account.password + "\n")
        await session.until("awaiting_input")
        assert session.result["prompt"]["text"].endswith("$ ")
        await session.send("echo $((40 + 2)) from $USER\n")
        await session.until("awaiting_input")
        assert f"42 from {far_host.account.name}" in session.seen
        await session.send("exit\n")
        await session.until("exited")
        assert session.result["exit_code"] == 0


async def test_a_busy_far_command_is_not_waiting(stack: Stack, far_host: FarHost) -> None:
    async with stack.caller() as caller, caller.terminal(f"{far_host.command} 'echo building; sleep 3; exit 5'") as session:
        assert "fingerprint" in session.seen
        await session.send("yes\n")
        await session.send(far_host.account.password + "\n", wait_seconds=2.5)
        assert session.result["state"] == "running"
        await session.until("exited")
        assert session.result["exit_code"] == 5
