"""What a running quickstart says when the server refuses the local controller."""

import asyncio
import io
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from quickstart.console import Console
from quickstart.errors import QuickstartError
from quickstart.server import refusals
from quickstart.server.stack import Stack


class Told:
    """A stack whose daemon tells one state after another; the last one is followed by the end."""

    controller_log = Path("controller.log")

    def __init__(self, *states: str, is_revoked: bool | QuickstartError = True) -> None:
        self._states: Iterator[str] = iter(states)
        self._is_revoked = is_revoked

    def connection_state(self) -> str:
        try:
            return next(self._states)
        except StopIteration:
            raise asyncio.CancelledError from None

    async def is_revoked(self, project: str, controller: str) -> bool:
        assert (project, controller) == ("quickstart", "local")
        if isinstance(self._is_revoked, QuickstartError):
            raise self._is_revoked
        return self._is_revoked


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "_LOOK_AGAIN_SECONDS", 0)


async def printed(stack: Told) -> list[str]:
    stream = io.StringIO()
    with pytest.raises(asyncio.CancelledError):
        await refusals.tell_refusals(cast(Stack, stack), "quickstart", "local", Console(stream))
    return stream.getvalue().splitlines()


async def test_a_revoked_host_is_told_once_with_what_to_do() -> None:
    (line,) = await printed(
        Told("connected", "refused", "refused", "", "connecting", "unreachable", "refused")
    )
    assert line.startswith("The host local was revoked: the server goes on")
    assert line.endswith("stop with Ctrl-C and run bin/quickstart again.")


async def test_a_refusal_after_a_connection_is_told_again() -> None:
    assert len(await printed(Told("refused", "connected", "refused"))) == 2


@pytest.mark.parametrize("answer", [False, QuickstartError("the database is locked")])
async def test_another_refusal_leads_to_the_log(answer: bool | QuickstartError) -> None:
    (line,) = await printed(Told("refused", is_revoked=answer))
    assert "its log says why: controller.log" in line


async def test_a_server_that_is_away_is_no_refusal() -> None:
    assert await printed(Told("connecting", "connected", "unreachable", "connected", "")) == []
