"""A link that is down refuses connections, and serves them again afterwards."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest

from chaos.faults.acts import ACTS
from chaos.faults.kinds import KINDS
from chaos.history import events
from chaos.plant.link import Link
from chaos.plant.ports import Ports, accepts
from chaos.plant.product import until
from tests.unit.chaos.faults.harmed import fault_of, harm_of


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionResetError):
        while line := await reader.readline():
            writer.write(line)
    writer.close()


@pytest.fixture
async def link() -> AsyncIterator[Link]:
    """A link to a server that repeats lines."""
    ports = Ports()
    far = await asyncio.start_server(_answer, "127.0.0.1", ports.next())
    found = Link(ports.next(), [far.sockets[0].getsockname()[1]])
    await found.open()
    yield found
    await found.close()
    far.close()
    ports.close()


async def _asked(link: Link) -> bytes:
    """The answer through the link."""
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    writer.write(b"x\n")
    answer = await reader.readline()
    writer.close()
    return answer


async def test_a_link_that_is_down_refuses_and_then_serves(link: Link, tmp_path: Path) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", link.port)
    with harm_of(tmp_path, links={"front": link}) as harm:
        doing = asyncio.ensure_future(ACTS["front_down"](harm, fault_of("front_down", 3600)))
        await until(lambda: not accepts(link.port), 30, "the link down")
        with suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()
        doing.cancel()
        with suppress(asyncio.CancelledError):
            await doing
    assert await _asked(link) == b"x\n"
    assert [event["state"] for event in events(tmp_path)] == ["begin", "end"]


@pytest.mark.parametrize("link", ["link", "front", "database", "redis"])
def test_everything_is_done_to_every_pair(link: str) -> None:
    done = {"cut", "stall", "half_open", "slow", "down"}
    assert {f"{link}_{what}" for what in done} <= set(KINDS)
