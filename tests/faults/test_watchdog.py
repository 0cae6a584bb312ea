"""A server whose event loop stands still for ever ends, says where, and can be started again."""

import asyncio

import httpx2
import pytest

from projects.process.watchdog import EXIT_CODE
from tests.support.stack import SERVERS, Stack

pytestmark = [pytest.mark.fault, pytest.mark.sqlite]

# Not imported here: the module is a whole server, with a database of its own.
APPLICATION = "tests.faults.standing_application:application"


@pytest.mark.parametrize("server", SERVERS)
async def test_a_server_that_stands_still_ends_and_its_sessions_go_on(server: str) -> None:
    kind = type("OwnStack", (Stack,), {"SERVER_KIND": server, "APPLICATION": APPLICATION})
    stack = kind()
    try:
        stack.start()
        async with stack.caller() as caller:
            session = await caller.start("cat")
            await session.send("one\n")
        assert stack.server is not None
        async with httpx2.AsyncClient(timeout=60) as client:
            with pytest.raises(httpx2.HTTPError):
                await client.get(f"http://127.0.0.1:{stack.port}/stand-still")
        assert await asyncio.to_thread(stack.server.wait, 60) == EXIT_CODE
        log = (stack.root / "server.log").read_text()
        assert "the event loop stands still" in log
        assert "standing_application.py" in log
        stack.start_server()
        async with stack.caller() as caller:
            session.caller = caller
            await session.until("awaiting_input", 60)
            await session.send("two\n")
            assert session.seen.count("two") == 2
            await session.terminate()
    finally:
        stack.stop()
