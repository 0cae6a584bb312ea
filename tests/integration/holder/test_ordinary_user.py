"""A holder of an ordinary user: what may not be signalled is hung up on, and what survives even
that is named.
"""

import asyncio
import os
import re
import signal
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import uuid4

import pytest

from controller_client.protocol.codec import decode_from_holder, encode
from controller_client.protocol.messages import HolderHello, InputAck, StartInteractiveCmd
from controller_client.protocol.values import NOTE_LEFT_RUNNING
from controller_client.session_files.directory import create, directory_of
from controller_client.session_files.framing import pack, read_frame
from controller_client.system.process_tree import HIDDEN_NAME
from tests.support.accounts import Account, host_libraries, interpreter_for, ordinary_user, requires
from tests.support.hosts.holders import Conversation
from tests.support.processes import is_running, pids_mentioning, send_signal
from tests.support.waiting import await_until

HIDING = 'mount -t proc -o hidepid=invisible proc /proc && exec "$0" "$@"'
"""Processes of other users are hidden from a user, root's too."""


class UserHost:
    """The spawner of an ordinary user, and conversations held in that user's name."""

    def __init__(self, account: Account, state_dir: Path, launcher: Sequence[str] = ()) -> None:
        self.account, self.state_dir = account, state_dir
        self._requests, theirs = socket.socketpair()
        # The shell drops what setpriv still has of root.
        launch = [
            *launcher,
            *account.as_user,
            "/bin/sh",
            "-c",
            'exec "$0" -m controller_client.holder.fork_server "$1"',
            interpreter_for(account),
            str(state_dir),
        ]
        environment = {
            "PATH": os.defpath,
            "PYTHONPATH": str(host_libraries()),
            "HOME": str(account.home),
        }
        self._process = subprocess.Popen(launch, stdin=theirs, env=environment, cwd="/")
        theirs.close()
        self.talks: list[Conversation] = []

    async def run(self, command: str) -> Conversation:
        session_id = str(uuid4())
        os.setegid(self.account.gid)
        os.seteuid(self.account.uid)
        try:
            start = StartInteractiveCmd(seq=1, session_id=session_id, command=command)
            create(self.state_dir, start)
            self._requests.sendall(b"+\n")
            _, (spare,), _, _ = socket.recv_fds(self._requests, 1000, 1)
            with socket.socket(fileno=spare) as holder:
                holder.sendall(pack(encode(start)))
                assert isinstance(decode_from_holder.decode(read_frame(holder)), HolderHello)
            connection = directory_of(self.state_dir, session_id).connect()
        finally:
            os.seteuid(0)
            os.setegid(0)
        reader, writer = await asyncio.open_unix_connection(sock=connection)
        talk = Conversation(session_id, reader, writer, acks=True)
        self.talks.append(talk)
        talk.attach()
        return talk

    async def close(self) -> None:
        for talk in self.talks:
            talk.forget()
            directory = directory_of(self.state_dir, talk.session_id)
            await await_until(
                lambda directory=directory: not directory.path.exists(),
                55,
                "the session to be forgotten",
            )
            await talk.close()
        self._requests.close()
        self._process.wait()


@pytest.fixture(scope="module")
def account() -> Iterator[Account]:
    requires("sudo")
    with ordinary_user("hold", may_sudo=True) as account:
        yield account


@pytest.fixture
def state_dir(account: Account) -> Iterator[Path]:
    with TemporaryDirectory() as directory:
        Path(directory).chmod(0o755)
        state_dir = Path(directory) / "state"
        state_dir.mkdir(mode=0o700)
        os.chown(state_dir, account.uid, account.gid)
        yield state_dir


@pytest.fixture
async def host(account: Account, state_dir: Path) -> AsyncIterator[UserHost]:
    host = UserHost(account, state_dir)
    try:
        yield host
    finally:
        await host.close()


@pytest.fixture
async def hiding_host(account: Account, state_dir: Path) -> AsyncIterator[UserHost]:
    host = UserHost(account, state_dir, ["unshare", "-m", "sh", "-c", HIDING])
    try:
        yield host
    finally:
        await host.close()


async def _sudo(host: UserHost, command: str) -> Conversation:
    talk = await host.run(command)
    assert (await talk.prompt()).kind == "secret"
    ack = await talk.type(secret=host.account.password.encode() + b"\n")
    assert ack.failure is None
    return talk


async def test_a_program_of_root_behind_sudo_is_ended(host: UserHost) -> None:
    talk = await _sudo(host, "sudo -k bash -c 'echo begun; exec sleep 300'")
    await talk.shows(b"begun")
    await talk.terminate(grace_seconds=1)
    done = await talk.done()
    assert (done.end_reason, done.survivors) == ("terminated", [])


async def _sudo_unseen(host: UserHost, command: str) -> Conversation:
    """Sudo, where nobody can prove that it is sudo that asks."""
    talk = await host.run(command)
    await talk.shows(b"assword")
    await talk.type(host.account.password.encode() + b"\n")
    await talk.shows(b"begun")
    return talk


async def test_a_program_of_root_that_is_hidden_is_ended(hiding_host: UserHost) -> None:
    talk = await _sudo_unseen(hiding_host, "sudo -k bash -c 'echo begun; exec sleep 300'")
    await talk.terminate(grace_seconds=1)
    done = await talk.done()
    assert (done.end_reason, done.survivors) == ("terminated", [])


async def test_a_program_of_root_that_is_left_and_hidden_is_counted(hiding_host: UserHost) -> None:
    left = "echo begun; read x; trap '' HUP; setsid -f sleep 4"
    talk = await _sudo_unseen(hiding_host, f'sudo -k bash -c "{left}"')
    await talk.type(b"\n")
    done = await talk.done()
    assert (done.end_reason, done.notes) == ("exited", [NOTE_LEFT_RUNNING])
    assert [name.split("[")[0] for name in done.survivors] == [HIDDEN_NAME]


async def test_a_program_of_root_that_survives_everything_is_named(host: UserHost) -> None:
    marker = f"marker-{uuid4().hex}"
    loop = "trap '' HUP TERM INT; echo begun; while :; do read -t 60 x < <(sleep 60); done"
    talk = await _sudo(host, f"""sudo -k bash -c "{loop}" {marker}""")
    await talk.shows(b"begun")
    # Input that the program does not read waits meanwhile.
    waiting = [talk.type_later((b"x" * 4000 + b"\n") * 15) for _ in range(4)]
    await talk.terminate(grace_seconds=0.3)
    done = await talk.done()
    assert done.end_reason == "terminated"
    assert {ack.input_seq for ack in talk.all_of(InputAck)} >= set(waiting)
    # sudo itself may kill it when its terminal is gone; what is there now has been named.
    left = [pid for pid in pids_mentioning(marker) if is_running(pid)]
    named = {int(found) for found in re.findall(r"\[(\d+)\]", " ".join(done.survivors))}
    assert set(left) <= named
    for pid in left:
        send_signal(pid, signal.SIGKILL)
    await await_until(lambda: not any(is_running(pid) for pid in left), 55, "the survivors to go")
