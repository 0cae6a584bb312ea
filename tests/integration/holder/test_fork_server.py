"""How a fork server ends when its daemon does."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import is_running
from tests.support.waiting import wait_until


@pytest.mark.parametrize("is_read", [True, False], ids=["answers read", "answers unread"])
def test_a_fork_server_whose_daemon_is_gone_ends_in_silence_with_its_spare(
    tmp_path: Path, is_read: bool
) -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "controller_client.holder.fork_server", str(tmp_path)],
            stdin=theirs,
            stderr=subprocess.PIPE,
        )
    answer = ours.recv(64, 0 if is_read else socket.MSG_PEEK)
    spare = int(answer.split()[1])
    assert is_running(spare)
    ours.close()
    assert server.communicate() == (None, b"")
    assert server.returncode == 0
    wait_until(lambda: not is_running(spare), 30, "the spare holder to end")
