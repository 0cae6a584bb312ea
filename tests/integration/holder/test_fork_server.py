"""A fork server has one spare, and ends with its daemon; a holder ends without its files."""

import os
import select
import shutil
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.session_files.directory import create
from controller_client.session_files.framing import pack
from tests.support.hosts.holders import holder_host
from tests.support.processes import is_running
from tests.support.waiting import await_until, wait_until


def _fork_server(state_dir: Path) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A fork server, and its daemon's end of the socket."""
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-m", "controller_client.holder.fork_server", str(state_dir)],
            stdin=theirs,
            stderr=subprocess.PIPE,
        )
    return ours, server


def _spares(connection: socket.socket, count: int) -> list[int]:
    """So many spares, as they are announced, and all that come within a second after them."""
    found: list[int] = []
    while select.select([connection], (), (), 60 if len(found) < count else 1)[0]:
        data, descriptors, _, _ = socket.recv_fds(connection, 4096, 8)
        found += [int(line.split()[1]) for line in data.decode().splitlines()]
        # The other ends stay open: a spare ends without its daemon.
        _open.extend(socket.socket(fileno=descriptor) for descriptor in descriptors)
    return found


_open: list[socket.socket] = []


def test_there_is_one_spare_although_the_daemon_asks_before_it_comes(tmp_path: Path) -> None:
    # Before the first spare came, the daemon asks for a holder, and then for the next.
    ours, server = _fork_server(tmp_path)
    ours.send(b"+\n")
    (first,) = _spares(ours, 1)
    ours.send(b"%d session-1\n~\n" % first)
    (second,) = _spares(ours, 1)
    ours.send(b"~\n~\n")
    assert _spares(ours, 0) == []
    # A dead spare is none.
    os.kill(second, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{second}").exists(), 55, "the spare to be reaped")
    ours.send(b"~\n")
    assert len(_spares(ours, 1)) == 1
    ours.close()
    assert server.communicate() == (None, b"")
    while _open:
        _open.pop().close()


@pytest.mark.parametrize("is_read", [True, False], ids=["answers read", "answers unread"])
def test_a_fork_server_whose_daemon_is_gone_ends_in_silence_with_its_spare(
    tmp_path: Path, is_read: bool
) -> None:
    ours, server = _fork_server(tmp_path)
    answer = ours.recv(64, 0 if is_read else socket.MSG_PEEK)
    spare = int(answer.split()[1])
    assert is_running(spare)
    ours.close()
    assert server.communicate() == (None, b"")
    assert server.returncode == 0
    wait_until(lambda: not is_running(spare), 55, "the spare holder to end")


async def test_a_holder_whose_directory_was_removed_ends_after_its_program(
    tmp_path: Path,
) -> None:
    async with holder_host(tmp_path) as host:
        talk = await host.run("bash -c 'read x'")
        await talk.prompt()
        holder = host.holder_pid(talk.session_id)
        shutil.rmtree(host.directory(talk.session_id).path)
        # Without its files the program still goes on, and is talked to.
        await talk.type(b"\n")
        await talk.done()
        # The holder looks four times a minute, and whenever it is woken. It may have ended already.
        with suppress(ProcessLookupError):
            os.kill(holder, signal.SIGCHLD)
        await await_until(lambda: not is_running(holder), 55, "the holder to end")


async def test_a_session_goes_on_whose_daemon_died_before_it_was_greeted(tmp_path: Path) -> None:
    start = StartInteractiveCmd(seq=1, session_id=str(uuid4()), command="bash -c 'read x; exit 7'")
    async with holder_host(tmp_path) as host:
        ours, server = _fork_server(tmp_path)
        (spare,) = _spares(ours, 1)
        assert create(tmp_path, start)
        ours.send(b"%d %s\n" % (spare, start.session_id.encode()))
        with _open.pop() as connection:
            connection.sendall(pack(encode(start)))
        directory = host.directory(start.session_id)
        await await_until(directory.read_pid, 55, "the program to start")
        talk = await host.talk(start.session_id)
        talk.attach()
        await talk.prompt()
        await talk.type(b"\n")
        assert (await talk.done()).exit_code == 7
        ours.close()
        assert server.communicate() == (None, b"")
