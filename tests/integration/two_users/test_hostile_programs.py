"""A program of another user than the daemon's reaches nothing of the daemon's."""

import json
import shlex
from typing import Any

from tests.support.mcp.client import Caller
from tests.support.processes import children_of
from tests.support.stack import Stack

# Prints one JSON object: what was tried, and the name of the error, or "done".
TRY = """
import ctypes, errno, json, os, resource, signal, socket, sys
state, credential, session, daemon, fork_server, holder = sys.argv[1:]
libc = ctypes.CDLL(None, use_errno=True)
found = {}
def tried(what, act):
    try:
        act()
    except OSError as error:
        found[what] = errno.errorcode[error.errno]
    else:
        found[what] = "done"
def traced(pid):
    if libc.ptrace(0x4206, pid, 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
def connected():
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(f"{session}/holder.sock")
tried("read the credential", lambda: open(credential).read())
tried("read the policy", lambda: open(f"{state}/policy.toml").read())
tried("list the state directory", lambda: os.listdir(state))
tried("remove the stop file", lambda: os.unlink(f"{state}/stop"))
tried("make a stop file", lambda: open(f"{state}/stop", "w"))
tried("replace the state directory", lambda: os.rename(state, state + ".away"))
for name in ("start.json", "holder.lock", "record.json"):
    tried(f"read {name}", lambda: open(f"{session}/{name}").read())
tried("forge the end", lambda: open(f"{session}/done.json", "w"))
tried("connect to the holder", connected)
for name, pid in (("daemon", daemon), ("fork server", fork_server), ("holder", holder)):
    pid = int(pid)
    for file in ("mem", "environ", "maps", "fd/0", "cwd/start.json"):
        tried(f"{name}: open {file}", lambda: os.open(f"/proc/{pid}/{file}", os.O_RDONLY))
    tried(f"{name}: list descriptors", lambda: os.listdir(f"/proc/{pid}/fd"))
    tried(f"{name}: write oom_score_adj", lambda: open(f"/proc/{pid}/oom_score_adj", "w"))
    tried(f"{name}: trace", lambda: traced(pid))
    tried(f"{name}: limit", lambda: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1)))
    for number in ("SIGSTOP", "SIGTERM", "SIGKILL"):
        tried(f"{name}: {number}", lambda: os.kill(pid, getattr(signal, number)))
tried("become root", lambda: os.setuid(0))
tried("become the daemon's user", lambda: os.setuid(os.stat(state).st_uid))
print(json.dumps(found))
"""
REFUSED = {"EACCES", "EPERM"}


async def _attempts(caller: Caller, *arguments: str) -> dict[str, str]:
    """Make each attempt in a session of its own, and return the outcomes."""
    command = shlex.join(["/usr/bin/python3", "-c", TRY, *arguments])
    answer: dict[str, Any] = await caller.call("execute_command", command=command)
    assert answer["success"], answer
    found: dict[str, str] = json.loads(answer["stdout"])
    return found


def _reach(stack: Stack, session_id: str) -> list[str]:
    holder = stack.holder_pid(session_id)
    assert stack.daemon is not None
    (fork_server,) = children_of(stack.daemon.pid)
    session = stack.state_dir / "sessions" / session_id
    places = (stack.state_dir, stack.credential_file, session)
    return [*map(str, places), *map(str, (stack.daemon.pid, fork_server, holder))]


async def test_a_program_reaches_neither_files_nor_processes_of_the_daemon(
    two_user_stack: Stack,
) -> None:
    async with two_user_stack.caller() as caller, caller.terminal("cat") as session:
        found = await _attempts(caller, *_reach(two_user_stack, session.session_id))
        assert {what: how for what, how in found.items() if how not in REFUSED} == {}
        assert len(found) > 40
        await session.send("still here\n")
        assert "still here" in session.result["output"]


async def test_every_file_of_the_daemon_and_its_holders_is_closed(two_user_stack: Stack) -> None:
    stack = two_user_stack
    assert stack.account is not None
    async with stack.caller() as caller, caller.terminal("cat") as session:
        own = stack.state_dir / "sessions" / session.session_id
        places = [stack.state_dir, stack.credential_file, *stack.state_dir.iterdir(), own]
        places += own.iterdir()
        found = {path.name: path.lstat() for path in places}
    # What is in a closed directory is closed: the socket of a holder and the host's identity.
    is_open = {name for name, status in found.items() if status.st_mode & 0o077}
    assert is_open <= {"holder.sock", "instance_id"}
    assert {status.st_uid for status in found.values()} == {stack.account.uid}
    assert "holder.sock" in found
