"""Another user of the host cannot read the daemon's state or talk to its holders, and no program
reads their memory.
"""

import os
import subprocess
from pathlib import Path

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.config.places import prepare_state_dir
from tests.support.accounts import Account, ordinary_user
from tests.support.mcp.client import detached
from tests.support.stack import Stack
from tests.support.waiting import wait_until

TRY = """
import os, socket, sys
sessions, session, sock = sys.argv[1:]
def tried(what, action):
    try:
        action()
    except OSError as error:
        print(what, error.errno)
    else:
        print(what, "done")
def connect():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(sock)
        s.settimeout(5)
        s.sendall(b"x" * 64)
        print("answer", s.recv(100))
tried("list", lambda: os.listdir(sessions))
tried("read", lambda: open(os.path.join(session, "holder.lock")).read())
tried("connect", connect)
tried("replace", lambda: os.rename(sock, sock + ".away"))
tried("unlink", lambda: os.unlink(sock))
tried("plant", lambda: os.symlink("/tmp", os.path.join(sessions, "planted")))
"""


def _tries(account: Account, *arguments: str) -> dict[str, str]:
    """Make each attempt as that user and return the outcomes."""
    command = [
        *account.as_user,
        "/bin/sh",
        "-c",
        'exec /usr/bin/python3 -c "$@"',
        "sh",
        TRY,
        *arguments,
    ]
    done = subprocess.run(
        command, cwd="/", env={"PATH": os.defpath}, capture_output=True, text=True, check=True
    )
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


async def test_a_second_user_can_neither_reach_a_session_nor_replace_its_socket(
    unprivileged_stack: Stack,
) -> None:
    with ordinary_user("o") as other:
        async with (
            detached(unprivileged_stack.caller()) as caller,
            caller.terminal("cat") as terminal,
        ):
            sessions = unprivileged_stack.state_dir / "sessions"
            session = sessions / terminal.session_id
            (sock,) = (path for path in session.iterdir() if path.is_socket())
            attempts = _tries(other, str(sessions), str(session), str(sock))
            assert attempts == dict.fromkeys(
                ("list", "read", "connect", "replace", "unlink", "plant"), "13"
            )
            # Even where the directories let the other user through, the holder asks the kernel
            # for the uid of its peer.
            for directory in (unprivileged_stack.state_dir, sessions, session):
                directory.chmod(0o711)
            sock.chmod(0o666)
            try:
                reached = _tries(other, str(sessions), str(session), str(sock))
            finally:
                for directory in (unprivileged_stack.state_dir, sessions, session):
                    directory.chmod(0o700)
            assert reached.get("answer") in {None, "b''"}
            assert (reached["replace"], reached["unlink"], reached["plant"]) == ("13", "13", "13")
            assert "still here" in (await terminal.send("still here\n"))["output"]


async def test_a_program_reads_no_memory_of_daemon_fork_server_and_holder(
    unprivileged_stack: Stack,
) -> None:
    ours = ["$PPID", *map(str, unprivileged_stack.daemon_pids())]
    places = [f"/proc/{pid}/{name}" for pid in ours for name in ("mem", "environ")]
    async with detached(unprivileged_stack.caller()) as caller:
        done = await caller.call(
            "execute_command", command=f"sh -c 'head -qc 8 {' '.join(places)} /proc/$$/environ'"
        )
    assert len(ours) >= 3
    assert done["stderr"].count("Permission denied") == len(places)
    # A program reads its own, as ever.
    assert len(done["stdout"]) == 8


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_state_directory_that_another_user_made_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    for parent in tmp_path.parents[:2]:
        parent.chmod(0o755)
    with ordinary_user("q") as other:
        for name, make in (("dir", "mkdir -m 700"), ("link", "ln -s /root")):
            path = tmp_path / name
            subprocess.run([*other.as_user, "/bin/sh", "-c", f"{make} {path}"], check=True, cwd="/")
            wait_until(lambda path=path: path.is_symlink() or path.exists(), 90, "it to be there")
            with pytest.raises(ConfigurationError, match=r"another user|is a link"):
                prepare_state_dir(path)
