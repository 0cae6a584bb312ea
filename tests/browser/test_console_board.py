"""The board in a browser: rows come and go by themselves, and filters live in the address."""

from collections.abc import Iterator

import pytest

from tests.support.browser import Page
from tests.support.mcp.client import connect
from tests.support.stack import Stack, running_stack


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


async def test_the_board_is_live_and_its_filters_are_in_the_address(
    own_stack: Stack, page: Page
) -> None:
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        page.open(f"http://127.0.0.1:{own_stack.port}/")
        async with (
            caller.terminal("bash -c 'read -sp Password: x'"),
            caller.terminal("bash -c 'read -p Name? x; sleep 100'") as asking,
        ):
            page.await_text("Password:", "[data-group=person]")
            page.await_text("Name?", "[data-group=agent]")
            page.await_text("1 needs a person", "#waiting")
            assert page.evaluate("document.title").startswith("(1) ")
            page.keep_picture("console-now")
            await asking.send("Ada\n", wait_seconds=0)
            page.await_text("Name?Ada", "[data-group=works]")
            page.open(f"http://127.0.0.1:{own_stack.port}/?waits=secret&q=password")
            page.await_text("Password:", "[data-group=person]")
            page.await_text("1 not shown", "#hidden")
            assert "Name?" not in page.text("main")
            page.type_keys("j\n")
            page.await_text("waits for a secret", "#state")
        page.open(f"http://127.0.0.1:{own_stack.port}/")
        page.await_text("No session is active.")
        assert page.errors == []
