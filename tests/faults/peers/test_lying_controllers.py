"""A controller that lies to a real server gains nothing and disturbs no honest controller."""

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed

from controller_client.protocol import codec
from controller_client.protocol.limits import MAX_FRAME_BYTES
from controller_client.protocol.messages import (
    Ack,
    CommandAck,
    Gap,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    Started,
    StartInteractiveCmd,
    StreamFinal,
    StreamOffset,
    TerminalReport,
)
from tests.support.hosts.scripted_controller import ScriptedController, scripted_controller
from tests.support.processes import resident_bytes
from tests.support.rows import make_hello
from tests.support.stack import PROJECT_ROOT, Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

_MIB = 1024 * 1024
_REFUSED = {1002, 1003, 1006, 1007, 1009, 4008, 4400}


def _credential_of_a_liar(stack: Stack) -> str:
    environment = {**stack.server_environment(), "DJANGO_SETTINGS_MODULE": "config.settings.base"}
    command = [sys.executable, "manage.py", "create_controller", "first", "liar"]
    made = subprocess.run(
        command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return made.stdout.strip().splitlines()[-1]


def _output(session_id: str, offset: int, data: bytes, **more: Any) -> InteractiveOutput:
    return InteractiveOutput(
        session_id=session_id, stream="stdout", offset=offset, seq=1, data=data, **more
    )


def _forged(session_id: str) -> list[Message]:
    """Return frames that only the session's own controller may send."""
    verdict = TerminalReport(
        state="awaiting_input",
        offset=0,
        input_seq=0,
        kind="secret",
        evidence="kernel",
        prompt="Password: ",
    )
    final = StreamFinal(stream="stdout", next_offset=0, sha256="0" * 64)
    return [
        _output(session_id, 0, b"forged"),
        _output(session_id, 0, b"", terminal=verdict),
        Gap(
            session_id=session_id,
            stream="stdout",
            from_offset=0,
            to_offset=2**62,
            reason="ring_overflow",
        ),
        Started(session_id=session_id, command_seq=1, pid=1),
        InputAck(session_id=session_id, command_seq=1, input_seq=2**62),
        CommandAck(session_id=session_id, command_seq=2**62),
        InteractiveCmdDone(
            session_id=session_id, end_reason="exited", exit_code=10**9, streams=[final]
        ),
    ]


def _broken(session_id: str) -> list[str | bytes]:
    """Return frames that no daemon sends. Each is refused as a whole."""
    done = json.loads(
        codec.encode(InteractiveCmdDone(session_id=session_id, end_reason="exited", exit_code=0))
    )
    output = json.loads(codec.encode(_output(session_id, 0, b"x")))
    return [
        json.dumps({**done, "exit_code": 10**12}),
        json.dumps({**done, "exit_code": 1.5}),
        json.dumps({**done, "end_reason": "won"}),
        json.dumps({**output, "offset": -1}),
        json.dumps({**output, "offset": 2**63}),
        json.dumps({**output, "offset": 10**400}),
        json.dumps({**output, "data": "not base64!"}),
        json.dumps({**output, "stream": ["stdout"]}),
        json.dumps({**output, "terminal": {"state": "awaiting_input"}}),
        '{"type":"PING","type":"HELLO"}',
        '{"type":"PING","v":1,"id":"a","epoch":0' + ',"x":' + "[" * 60_000,
        "[" * 200_000,
        '{"a":' * 30_000,
        "NaN",
        "\x00",
        b"\xff\xfe\x00\x80",
        codec.encode(
            Ack(offsets=[StreamOffset(session_id=session_id, stream="stdout", offset=2**62)])
        ).decode(),
        codec.encode(StartInteractiveCmd(seq=1, session_id=session_id, command="id")).decode(),
        "x" * (MAX_FRAME_BYTES + 1),
        b"\0" * (4 * MAX_FRAME_BYTES),
    ]


async def _is_refused(
    stack: Stack, credential: str, attack: Callable[[ScriptedController], Awaitable[None]]
) -> None:
    """The attack, on a connection of its own, ends that connection."""
    async with scripted_controller(stack.port, credential, max_size=None) as liar:
        await liar.hello()
        with suppress(ConnectionClosed):
            await attack(liar)
        assert await liar.closed() in _REFUSED


@pytest.mark.timeout(200)
async def test_forged_or_broken_frames_close_the_connection_and_harm_no_session(
    own_stack: Stack,
) -> None:
    credential = await asyncio.to_thread(_credential_of_a_liar, own_stack)
    assert own_stack.server is not None
    async with own_stack.caller() as caller, caller.terminal("cat", controller="host") as victim:
        await victim.send("before\n")
        epoch, base = (
            own_stack.database.controller_epoch("host"),
            resident_bytes(own_stack.server.pid),
        )
        attacks: list[Message | str | bytes] = [
            *_forged(victim.session_id),
            *_forged("no uuid")[:1],
            *_broken(victim.session_id),
        ]
        for frame in attacks:

            async def send(liar: ScriptedController, frame: Message | str | bytes = frame) -> None:
                await (liar.send(frame) if isinstance(frame, Message) else liar.send_raw(frame))

            await _is_refused(own_stack, credential, send)
        await victim.send("after\n", wait_seconds=30)
        assert (
            own_stack.database.transcript(victim.session_id)
            == b"before\r\nbefore\r\nafter\r\nafter\r\n"
        )
        assert (victim.result["state"], victim.kind) == ("awaiting_input", "line")
        assert own_stack.database.state(victim.session_id) == "RUNNING"
        assert own_stack.database.controller_epoch("host") == epoch
        assert resident_bytes(own_stack.server.pid) - base < 64 * _MIB
    said = {
        code
        for (code,) in own_stack.database.rows(
            "SELECT detail FROM projects_auditevent WHERE action LIKE '%violation'"
        )
    }
    assert any("UNKNOWN_SESSION" in str(code) for code in said)


async def _own_session(own_stack: Stack, liar: ScriptedController) -> str:
    async with own_stack.caller() as caller:
        asking = asyncio.create_task(caller.start("cat", controller="liar", wait_seconds=0))
        start = await liar.receive(StartInteractiveCmd)
        await liar.send(Started(session_id=start.session_id, command_seq=start.seq, pid=1))
        await asking
    return start.session_id


async def test_a_lying_controller_cannot_rewrite_or_skip_its_output(own_stack: Stack) -> None:
    credential = await asyncio.to_thread(_credential_of_a_liar, own_stack)
    async with scripted_controller(own_stack.port, credential) as liar:
        await liar.hello()
        session_id = await _own_session(own_stack, liar)
        await liar.send(_output(session_id, 0, b"the truth"))
        assert (await liar.receive(Ack)).offsets[0].offset == 9
        # Committed output stays, whatever the controller sends about it later.
        await liar.send(_output(session_id, 0, b"a lie, and more of it"))
        assert (await liar.receive(Ack)).offsets[0].offset == 21
        await liar.send(
            Gap(
                session_id=session_id,
                stream="stdout",
                from_offset=0,
                to_offset=9,
                reason="ring_overflow",
            )
        )
        await liar.send(InputAck(session_id=session_id, command_seq=2**60, input_seq=2**60))
        await liar.send(_output(session_id, 10**9, b"far ahead"))
        assert await liar.closed() == 4400
    assert own_stack.database.transcript(session_id).startswith(b"the truth")
    async with scripted_controller(own_stack.port, credential) as liar:
        await liar.hello()

        # A session that is not named in HELLO any more is over once the connection has lasted, and
        # stays so.
        async def is_lost() -> bool:
            await liar.send(Ping())
            return own_stack.database.state(session_id) == "LOST"

        await await_until(is_lost, 90, "the session to be over")
        await liar.send(InteractiveCmdDone(session_id=session_id, end_reason="exited", exit_code=0))
        await liar.send(Started(session_id=session_id, command_seq=1, pid=1))
        ping = Ping()
        await liar.send(ping)
    assert own_stack.database.state(session_id) == "LOST"


async def _flood(own_stack: Stack, credential: str, frame: str, count: int) -> None:
    async with scripted_controller(own_stack.port, credential, max_size=None) as liar:
        await liar.hello(instance_id="flood")
        try:
            for _ in range(count):
                await liar.send_raw(frame)
        except ConnectionClosed:
            return


async def test_floods_of_one_controller_delay_no_other_and_cost_no_memory(
    own_stack: Stack,
) -> None:
    credential = await asyncio.to_thread(_credential_of_a_liar, own_stack)
    assert own_stack.server is not None
    pid = own_stack.server.pid
    async with own_stack.caller() as caller, caller.terminal("cat", controller="host") as calm:
        await calm.send("warm\n")
        base = resident_bytes(pid)
        stray = codec.encode(
            Gap(
                session_id="0d9a1c52-5b8e-4b5e-9b67-3f1f2f0f4a11",
                stream="stdout",
                from_offset=0,
                to_offset=1,
                reason="lost",
            )
        )
        for frame, count in (
            (codec.encode(Ping()).decode(), 20_000),
            (stray.decode(), 5_000),
            (codec.encode(make_hello()).decode(), 2_000),
        ):
            flood = asyncio.create_task(_flood(own_stack, credential, frame, count))
            for number in range(3):
                await calm.send(f"line {number}\n", wait_seconds=30)
                assert calm.result["state"] == "awaiting_input"
                assert f"line {number}" in calm.result["output"]
            await flood
        assert resident_bytes(pid) - base < 64 * _MIB
        assert own_stack.database.transcript(calm.session_id).count(b"\n") == 2 * (1 + 9)
