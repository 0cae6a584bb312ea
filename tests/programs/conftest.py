"""A loopback sshd, to which the tests log in."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.accounts import Account, ordinary_user, requires, requires_root
from tests.support.ports import free_port
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
Subsystem sftp internal-sftp
"""
FORGETFUL = (
    "-o UserKnownHostsFile=/dev/null -o GlobalKnownHostsFile=/dev/null -o PubkeyAuthentication=no"
)
"""Options of ssh with which it remembers no host, and asks for a password."""


@dataclass(frozen=True)
class FarHost:
    """A running sshd, and the account that may log in."""

    port: int
    account: Account

    @property
    def command(self) -> str:
        """Return the command line that logs in with no host key remembered."""
        return f"ssh -p {self.port} {FORGETFUL} {self.account.name}@127.0.0.1"


def _listens(port: int) -> bool:
    return f":{port:04X} " in "".join(
        line.split(" st ")[0]
        for line in Path("/proc/net/tcp").read_text().splitlines(keepends=True)
    )


@pytest.fixture(scope="module")
def far_host() -> Iterator[FarHost]:
    """Return a running sshd with a host key of its own."""
    requires_root()
    requires("ssh", "sshd", "ssh-keygen")
    directory = Path(tempfile.mkdtemp(prefix="holdline-sshd-"))
    port = free_port()
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "host_key")],
        check=True,
    )
    (directory / "sshd_config").write_text(_CONFIGURATION.format(port=port, directory=directory))
    Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path="/usr/sbin:/sbin:/usr/bin")
    assert program is not None
    with ordinary_user("f") as account:
        server = subprocess.Popen(
            [program, "-D", "-e", "-f", str(directory / "sshd_config")], stderr=subprocess.DEVNULL
        )
        try:
            wait_until(lambda: _listens(port), 90, "sshd to listen")
            yield FarHost(port, account)
        finally:
            server.terminate()
            server.wait(90)
            shutil.rmtree(directory, ignore_errors=True)
