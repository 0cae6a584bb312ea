"""One WebSocket life against a real server on loopback."""

import asyncio
from http import HTTPStatus

import pytest

from controller_client.protocol.messages import (
    Draining,
    Error,
    FromServer,
    Hello,
    InputAck,
    InteractiveOutput,
    Ping,
    Pong,
    StreamOffset,
)
from controller_client.server_link.errors import SentAway, ServerRefused, ServerUnreachable
from controller_client.server_link.network.connection import Connection, open_connection
from tests.support.hosts.scripted_server import CREDENTIAL, ScriptedServer, scripted_server

HELLO = Hello(
    versions=[1],
    client_version="0",
    instance_id="i",
    boot_id="b",
    os="o",
    platform="p",
    hostname="h",
    capabilities=[],
    last_cmd_seq=0,
    sessions=[],
)
CHUNK = b"x" * 32 * 1024


def _ignore(message: FromServer) -> None:
    pass


def _output(number: int) -> InteractiveOutput:
    return InteractiveOutput(
        session_id="s", stream="stdout", offset=number * len(CHUNK), seq=number, data=CHUNK
    )


async def _connected(server: ScriptedServer) -> Connection:
    connection = await open_connection(server.url, CREDENTIAL)
    await connection.handshake(HELLO)
    return connection


async def test_the_credential_is_a_header_and_no_extension_is_offered() -> None:
    async with scripted_server() as server:
        connection = await _connected(server)
        (headers,) = server.request_headers
        names = {name.lower() for name in headers}
        assert server.authorizations == [f"Bearer {CREDENTIAL}"]
        assert "origin" not in names
        assert "sec-websocket-extensions" not in names
        await connection.close()


@pytest.mark.parametrize("status", [HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN])
async def test_a_refused_handshake_raises_server_refused(status: HTTPStatus) -> None:
    async with scripted_server() as server:
        server.refuse_with = status
        with pytest.raises(ServerRefused) as refused:
            await open_connection(server.url, CREDENTIAL)
        assert refused.value.status == status


@pytest.mark.parametrize(
    "status",
    [
        HTTPStatus.FOUND,
        HTTPStatus.NOT_FOUND,
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.SERVICE_UNAVAILABLE,
    ],
)
async def test_other_answers_to_the_handshake_raise_server_unreachable(status: HTTPStatus) -> None:
    async with scripted_server() as server:
        server.refuse_with = status
        with pytest.raises(ServerUnreachable) as failed:
            await open_connection(server.url, CREDENTIAL)
        assert not isinstance(failed.value, ServerRefused)
        assert len(server.authorizations) == 1


async def test_a_closed_port_raises_server_unreachable() -> None:
    server = ScriptedServer()
    await server.start()
    url = server.url
    await server.stop()
    with pytest.raises(ServerUnreachable):
        await open_connection(url, CREDENTIAL)


@pytest.mark.parametrize("code", [4401, 4403, 4426, 4010])
async def test_a_close_code_that_refuses_raises_server_refused(code: int) -> None:
    async with scripted_server() as server:
        server.close_after_hello = code
        connection = await open_connection(server.url, CREDENTIAL)
        with pytest.raises(ServerRefused) as refused:
            await connection.handshake(HELLO)
        assert refused.value.status == code


async def test_a_server_that_is_being_stopped_sends_away_before_welcome() -> None:
    async with scripted_server() as server:
        server.answers_hello = False
        connection = await open_connection(server.url, CREDENTIAL)
        shaking = asyncio.create_task(connection.handshake(HELLO))
        await server.connected()
        await server.send(Draining(reason="a new version"))
        with pytest.raises(SentAway, match="a new version"):
            await shaking
        await connection.close()


async def test_every_message_after_welcome_carries_its_epoch() -> None:
    async with scripted_server() as server:
        server.epoch = 41
        connection = await _connected(server)
        connection.send(Ping())
        ping = await server.wait_for(Ping)
        assert ping.epoch == 42
        await connection.close()


async def test_a_full_window_stops_output_but_not_control_until_acknowledged() -> None:
    async with scripted_server() as server:
        server.acknowledges = False
        connection = await _connected(server)
        writer = asyncio.create_task(connection.write_when_congested())
        for number in range(32):
            connection.send_output("s", _output(number))
        connection.send(InputAck(session_id="s", command_seq=1, input_seq=1))
        await server.wait_for(InputAck)
        assert await _outputs(server, 16) == 16  # 512 KiB of 32 KiB each
        connection.acknowledge("s", "stdout", 16 * len(CHUNK))
        assert await _outputs(server, 32) == 32
        assert connection.queued_bytes == 0
        writer.cancel()
        await connection.close()


async def _outputs(server: ScriptedServer, count: int) -> int:
    await server.wait_for(InteractiveOutput, lambda message: message.seq == count - 1)
    return len([message for message in server.received if isinstance(message, InteractiveOutput)])


async def test_messages_arrive_in_order_and_a_broken_one_gets_an_error_and_close() -> None:
    async with scripted_server() as server:
        connection = await _connected(server)
        await server.connected()
        seen: list[FromServer] = []
        for number in range(3):
            await server.send(Pong(reply_to=str(number)))
        await server.send_raw('{"type": "ACK"}')
        with pytest.raises(ServerUnreachable, match="broke the protocol"):
            await connection.receive_all(seen.append)
        assert [message.reply_to for message in seen if isinstance(message, Pong)] == [
            "0",
            "1",
            "2",
        ]
        error = await server.wait_for(Error)
        assert error.code == "BAD_FRAME"
        await connection.close()


async def test_a_silent_connection_is_cut() -> None:
    async with scripted_server() as server:
        connection = await open_connection(server.url, CREDENTIAL, dead_after_seconds=0.05)
        await connection.handshake(HELLO)
        watching = asyncio.create_task(connection.watch())
        with pytest.raises(ServerUnreachable):
            await connection.receive_all(_ignore)
        await watching
        await connection.close()


async def test_closing_says_why_first_and_sending_afterwards_is_harmless() -> None:
    async with scripted_server() as server:
        connection = await _connected(server)
        receiving = asyncio.create_task(connection.receive_all(_ignore))
        await connection.close("stopping")
        assert (await server.wait_for(Draining)).reason == "stopping"
        with pytest.raises(ServerUnreachable):
            await receiving
        connection.send(Ping())
        connection.acknowledge(
            "s", "stdout", StreamOffset(session_id="s", stream="stdout", offset=1).offset
        )
        await connection.close("again")
