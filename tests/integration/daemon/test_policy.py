"""A list of allowed commands holds in the whole product, and against a server that ignores it."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.messages import (
    InputAck,
    Message,
    ProjectRules,
    RunCommand,
    SendInput,
    Started,
    StartInteractiveCmd,
)
from tests.support.accounts import Account, requires, requires_root
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process
from tests.support.hosts.scripted_server import ScriptedServer, scripted_server
from tests.support.stack import Stack, deployed
from tests.support.waiting import await_until

SECONDS = 60.0
LISTS = {"ALLOWED_COMMANDS": "sleep,echo", "ALLOWED_DIRECTORIES": "/tmp,/srv"}
# A refused command, and the part of it that the refusal names.
REFUSED = [
    ("echo $(id)", "$(id)"),
    ("echo a; id", "id"),
    ("echo a\nid", "id"),
    ("sleep 1 & id", "&"),
    ("env id", "env"),
    ("/tmp/echo a", "/tmp/echo"),
    ("./echo a", "./echo"),
    ("PATH=/tmp echo a", "PATH=/tmp"),
    ("echo a > /tmp/holdline-never", "> /tmp/holdline-never"),
    ("bash -c id", "bash"),
]


# ---- the whole product ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    """A server with a list and a host without one.

    On the host's path ``cat`` is a link to another program.
    """
    stack = deployed()(server_environment={**LISTS, "HOLDLINE_LIMIT_OPEN_FILES": "77"})
    try:
        lies = stack.root / "lies"
        lies.mkdir()
        (lies / "cat").symlink_to("/usr/bin/id")
        _write_policy(
            stack.state_dir, f'[commands]\nsearch_path = ["{lies}", "/usr/bin", "/bin"]\n'
        )
        yield stack.start()
    finally:
        stack.stop()


def _write_policy(directory: Path, text: str) -> None:
    path = directory / "policy.toml"
    path.touch(mode=0o600)
    path.write_text(text)


@contextmanager
def _allowed(stack: Stack, entries: str) -> Iterator[None]:
    """The project of the stack's own token has this list of its own."""
    statement = "UPDATE projects_project SET allowed_commands = ? WHERE name = 'first'"
    stack.database.execute(statement, entries)
    try:
        yield
    finally:
        stack.database.execute(statement, None)


async def test_listed_programs_run_also_one_after_the_other(stack: Stack) -> None:
    async with stack.caller() as caller:
        done = await (await caller.start("sleep 0.1 && echo done")).until("exited")
        assert (done["output"].split(), done["exit_code"]) == (["done"], 0)
        result = await caller.call(
            "execute_command", command="echo 'a  b' | sleep 0 || echo never; echo '$x'"
        )
        assert (result["stdout"], result["return_code"]) == ("$x\n", 0)


async def test_the_server_refuses_before_anything_is_written(stack: Stack) -> None:
    before = stack.database.rows("SELECT count(*) FROM projects_commandsession")
    async with stack.caller() as caller:
        for command, part in REFUSED:
            for tool in (
                "start_interactive_command",
                "execute_command",
                "start_command",
                "run_command",
            ):
                body = await caller.refusal(tool, command=command)
                assert body["code"] == "COMMAND_NOT_ALLOWED"
                assert ascii(part)[1:-1] in body["error"]
                assert "sleep" in body["hint"]
    assert stack.database.rows("SELECT count(*) FROM projects_commandsession") == before


async def test_a_link_that_lies_about_its_program_is_refused_by_the_host(stack: Stack) -> None:
    with _allowed(stack, '["cat", "echo"]'):
        async with stack.caller() as caller:
            body = await caller.refusal("start_interactive_command", command="cat /etc/hostname")
    assert body["code"] == "COMMAND_NOT_ALLOWED"
    assert "'cat'" in body["error"]
    assert "/usr/bin/id" in body["error"]


async def test_the_limits_of_the_project_hold_for_its_sessions(stack: Stack) -> None:
    with _allowed(stack, '["head"]'):
        async with stack.caller() as caller:
            limits = (await caller.call("execute_command", command="head -n 20 /proc/self/limits"))[
                "stdout"
            ]
    assert next(line for line in limits.splitlines() if "open files" in line).split()[3:5] == [
        "77",
        "77",
    ]


async def test_programs_start_in_allowed_directories_only(stack: Stack) -> None:
    way_out = stack.root / "out"
    way_out.symlink_to("/etc")
    async with stack.caller() as caller:
        for cwd in ("/etc", "/tmp/..", "/tmp/../etc", "/", "/tmpx", str(way_out)):
            assert (await caller.refusal("start_interactive_command", command="echo a", cwd=cwd))[
                "code"
            ] == "CWD_NOT_ALLOWED"
        assert (await (await caller.start("echo a", cwd="/tmp")).until("exited"))["exit_code"] == 0


async def test_lines_for_a_shell_are_checked_as_commands_are(stack: Stack) -> None:
    attempts = [
        ("id\n", "id"),
        ("echo $(id)\n", "$(id)"),
        ("echo a; id\n", "id"),
        ("ec", "ec"),
        ("echo !!\n", "!"),
    ]
    with _allowed(stack, '["bash:shell", "sleep", "echo"]'):
        async with stack.caller() as caller, caller.terminal("bash --norc --noprofile") as shell:
            assert shell.kind == "shell"
            for typed, part in attempts:
                body = await caller.refusal(
                    "send_command_input", session_id=shell.session_id, input_text=typed
                )
                assert body["code"] == "COMMAND_NOT_ALLOWED"
                assert ascii(part)[1:-1] in body["error"]
            body = await caller.refusal(
                "send_command_input", session_id=shell.session_id, keys=["up"]
            )
            assert body["code"] == "COMMAND_NOT_ALLOWED"
            await shell.send("echo one && echo tw'o'\n")
            await shell.until_output("two")
            assert "uid=" not in shell.seen


# ---- the daemon alone ----------------------------------------------------------------------------


@pytest.fixture
async def server() -> AsyncIterator[ScriptedServer]:
    async with scripted_server() as running:
        yield running


@pytest.fixture
async def host(tmp_path: Path, server: ScriptedServer) -> AsyncIterator[DaemonProcess]:
    """A daemon whose policy allows sleep, echo, and bash as a shell, in one directory."""
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "lies").mkdir()
    (tmp_path / "lies/cat").symlink_to("/usr/bin/id")
    work = tmp_path / "work"
    work.mkdir()
    (work / "out").symlink_to("/etc")
    text = f"""
[commands]
allowed = ["sleep", "echo", "cat", "pwd", "bash:shell"]
search_path = ["{tmp_path}/lies", "/usr/bin", "/bin"]
[directories]
allowed = ["{work}"]
"""
    _write_policy(tmp_path / "state", text)
    async with daemon_process(tmp_path, server.url) as running:
        await server.connected()
        yield running


def _start(command: str | None = None, **more: Any) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, **more)


async def _answer(server: ScriptedServer, start: StartInteractiveCmd | RunCommand) -> Started:
    server.transcript(start.session_id)
    await server.send(start)
    return await server.wait_for(Started, lambda message: message.session_id == start.session_id)


async def _output(server: ScriptedServer, start: StartInteractiveCmd) -> bytes:
    await server.done(start.session_id)
    return bytes(server.transcript(start.session_id).data)


@pytest.mark.parametrize(
    ("command", "part"), [*REFUSED[:-1], ("cat /etc/hostname", "cat"), ("bash -c 'id' | id", "id")]
)
async def test_a_server_that_asks_for_anything_is_refused_by_the_host(
    server: ScriptedServer, host: DaemonProcess, command: str, part: str
) -> None:
    asked: list[StartInteractiveCmd | RunCommand] = [
        _start(command),
        _start(command, rules=ProjectRules(commands=["*"])),
        RunCommand(seq=2, session_id=str(uuid4()), command=command),
    ]
    for start in asked:
        started = await _answer(server, start)
        assert started.failure is not None
        assert started.failure.code == "COMMAND_NOT_ALLOWED"
        assert ascii(part)[1:-1] in started.failure.message
    assert host.sessions() == []


async def test_listed_programs_run_on_the_host_from_their_words(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    start = _start("sleep 0.1 && echo 'a  b' || echo never")
    assert (await _answer(server, start)).failure is None
    assert await _output(server, start) == b"a  b\r\n"
    assert (await server.done(start.session_id)).exit_code == 0
    words = _start(argv=["echo", "$(id)", ";", "id"])
    await _answer(server, words)
    assert await _output(server, words) == b"$(id) ; id\r\n"


async def test_directories_outside_are_refused_by_the_host(
    server: ScriptedServer, host: DaemonProcess, tmp_path: Path
) -> None:
    for cwd in (
        "/etc",
        str(tmp_path),
        str(tmp_path / "work/out"),
        str(tmp_path / "work/.."),
        "/proc/self/cwd",
        ".",
    ):
        started = await _answer(server, _start("pwd", cwd=cwd))
        assert started.failure is not None
        assert started.failure.code == "CWD_NOT_ALLOWED"
    inside = _start("pwd")
    assert (await _answer(server, inside)).failure is None
    assert (await _output(server, inside)).strip() == str(tmp_path / "work").encode()


class Typist:
    """Types into one session of a scripted server, and numbers inputs as a server does."""

    def __init__(self, server: ScriptedServer, session_id: str) -> None:
        self.server, self.session_id = server, session_id
        self.number = 0

    async def type(self, data: bytes = b"", **more: Any) -> InputAck:
        """Type into the session and return the host's acknowledgement."""
        self.number += 1
        number = self.number
        message: Message = SendInput(
            seq=100 + number, session_id=self.session_id, input_seq=number, data=data, **more
        )
        await self.server.send(message)
        return await self.server.wait_for(
            InputAck, lambda ack: ack.session_id == self.session_id and ack.input_seq == number
        )

    async def is_refused(self, data: bytes = b"", **more: Any) -> bool:
        """Type into the session; return whether the host's policy refused it."""
        ack = await self.type(data, **more)
        assert ack.failure is None or (ack.failure.code, ack.accepted_bytes) == (
            "COMMAND_NOT_ALLOWED",
            0,
        )
        return ack.failure is not None


async def _shell(server: ScriptedServer) -> Typist:
    start = _start("bash --norc --noprofile")
    assert (await _answer(server, start)).failure is None
    await await_until(
        lambda: "awaiting_input" in server.transcript(start.session_id).states,
        SECONDS,
        "the shell's prompt",
    )
    return Typist(server, start.session_id)


async def test_the_host_checks_what_is_typed_into_a_shell_also_after_a_restart(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    shell = await _shell(server)
    transcript = server.transcript(shell.session_id)
    for data in (
        b"id\n",
        b"echo $(id)\n",
        b"echo a; id\n",
        b"echo a",
        b"i",
        b"echo a\rid\r",
        b"\x15id\n",
        b"echo '!x'\n",
        b"cat /etc/hostname\n",
    ):
        assert await shell.is_refused(data)
    for more in (
        {"keys": ["up", "enter"]},
        {"keys": ["tab"]},
        {"secret": b"id\n"},
        {"data": b"id\n", "is_line_checked": True},
    ):
        assert await shell.is_refused(**more)
    assert not await shell.is_refused(b"echo on''e && echo t'w'o\n")
    await await_until(lambda: b"two" in transcript.data, SECONDS, "the output of the allowed line")
    await host.kill()
    await host.start()
    await server.connected(2)
    assert await shell.is_refused(b"id\n")
    assert not await shell.is_refused(b"echo th'r'ee\n")
    await await_until(lambda: b"three" in transcript.data, SECONDS, "the output after the restart")
    assert not await shell.is_refused(keys=["ctrl-d"])
    await server.done(shell.session_id)
    assert b"uid=" not in transcript.data


async def test_a_program_that_is_no_shell_is_answered_freely(
    server: ScriptedServer, host: DaemonProcess
) -> None:
    start = _start("bash -c 'exec /bin/cat'", rules=ProjectRules())
    await _answer(server, start)
    assert await Typist(server, start.session_id).is_refused(b"any answer\n"), (
        "a shell's own program is a shell to us"
    )


async def test_a_daemon_does_not_start_with_a_writable_policy(
    tmp_path: Path, server: ScriptedServer
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    _write_policy(tmp_path / "state", "[commands]\nallowed = ['echo']\n")
    (tmp_path / "state/policy.toml").chmod(0o666)
    async with daemon_process(tmp_path, server.url) as daemon:
        assert await asyncio.wait_for(daemon.wait(), SECONDS) == 78
        assert "policy" in daemon.log


# ---- users ---------------------------------------------------------------------------------------


async def test_programs_cannot_become_another_user_than_the_daemon(sudoer: Account) -> None:
    requires("sudo")
    stack = deployed()(account=sudoer)
    try:
        _write_policy(stack.state_dir, f'[users]\nallowed = ["{sudoer.name}"]\n')
        os.chown(stack.state_dir / "policy.toml", sudoer.uid, sudoer.gid)
        stack.start()
        async with stack.caller() as caller:
            for command in ("sudo -k id", "bash -c 'sudo -k id; id -un'"):
                ended = await (await caller.start(command)).until("exited", SECONDS)
                assert "no new privileges" in ended["output"]
                assert "uid=0" not in ended["output"]
    finally:
        stack.stop()


async def test_a_daemon_whose_user_the_policy_does_not_list_does_not_start(
    tmp_path: Path,
) -> None:
    requires_root()
    (tmp_path / "state").mkdir(mode=0o700)
    _write_policy(tmp_path / "state", '[users]\nallowed = ["nobody"]\nmay_change = true\n')
    async with daemon_process(tmp_path, "ws://127.0.0.1:1/") as daemon:
        assert await asyncio.wait_for(daemon.wait(), SECONDS) == 78
        assert "not in allowed of [users]" in daemon.log
