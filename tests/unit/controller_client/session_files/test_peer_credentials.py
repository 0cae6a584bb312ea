"""The kernel says who is at the other end of a unix socket."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from controller_client.session_files.peer_credentials import is_same_user, peer_pid

CONNECT = """
import socket, sys
peer = socket.socket(socket.AF_UNIX)
peer.connect(sys.argv[1])
sys.stdin.read()
"""


def test_our_own_process_is_of_our_user() -> None:
    ours, peers = socket.socketpair()
    with ours, peers:
        assert is_same_user(ours)
        assert peer_pid(ours) == os.getpid()


def test_a_process_of_another_user_is_not_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, peers = socket.socketpair()
    another = os.getuid() + 1
    with ours, peers:
        monkeypatch.setattr(os, "getuid", lambda: another)
        assert not is_same_user(ours)


def test_the_process_that_connected_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        listener.listen()
        listener.settimeout(30)
        with subprocess.Popen(
            [sys.executable, "-c", CONNECT, "socket"], stdin=subprocess.PIPE
        ) as peer:
            connection, _ = listener.accept()
            with connection:
                assert peer_pid(connection) == peer.pid
                assert is_same_user(connection)
