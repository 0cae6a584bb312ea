"""The compose file starts twice, serves a prompt, and loses no turn to deaths and restarts.

The name is not that of a test, so that no other run collects the module.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx2
import pytest
from mcp import MCPError

from tests.containers.composition import ADDRESS, Composition, composition
from tests.support.mcp.client import ToolRefusedError, connect
from tests.support.waiting import await_until

pytestmark = pytest.mark.timeout(3600)

_START_SECONDS: Final = 180.0
_TURNS: Final = 5
_SECRET: Final = "correct horse"
_PROGRAM: Final = (
    'sh -c \'printf "Name: "; read name; stty -echo; printf "Password: "; read word; stty echo;'
    ' echo; echo "$name ${#word}"; while read line; do echo "got $line"; done\''
)


class Talk:
    """One session, and all that its caller was shown of it."""

    def __init__(self, token: str) -> None:
        self._token = token
        self.session_id = self.seen = ""

    async def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Make a call once: what was refused for a while, or got lost, is repeated as the same."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            try:
                async with connect(f"{ADDRESS}/mcp", self._token) as caller:
                    return await caller.call(tool, **arguments)
            except ToolRefusedError as refused:
                if not refused.body["retryable"] or time.monotonic() > deadline:
                    raise
            except (MCPError, httpx2.HTTPError, ExceptionGroup):
                # The proxy or a server went away meanwhile.
                if time.monotonic() > deadline:
                    raise

    async def start(self) -> None:
        """Start the program, and answer both of its questions."""
        asked = await self.call(
            "start_interactive_command", command=_PROGRAM, request_id=str(uuid4()), wait_seconds=25
        )
        self.session_id = asked["session_id"]
        for kind, answer in (("line", "ada"), ("secret", _SECRET)):
            assert (asked["prompt"]["kind"], asked["prompt"]["evidence"]) == (kind, "kernel")
            asked = await self.type(answer)
        assert f"ada {len(_SECRET)}" in self.seen

    async def type(self, line: str) -> dict[str, Any]:
        """Type a line, and return what the program did."""
        turn = await self.call(
            "send_command_input",
            session_id=self.session_id,
            input_text=f"{line}\n",
            request_id=str(uuid4()),
            wait_seconds=25,
        )
        self.seen += turn["output"]
        return turn

    async def turns(self, name: str) -> None:
        """Type lines, each of which the program answers once."""
        for number in range(_TURNS):
            await self.type(f"{name} {number}")
        await self.call("send_command_input", session_id=self.session_id, wait_seconds=0)
        shown = await self.call("read_session_output", session_id=self.session_id)
        answers = [f"got {name} {number}" for number in range(_TURNS)]
        assert [line for line in shown["output"].splitlines() if line in answers] == answers


@pytest.fixture
def composed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Composition]:
    """Everything that the compose file names, started from nothing."""
    with composition(tmp_path) as made:
        monkeypatch.setenv("SSL_CERT_FILE", str(made.certificate()))
        yield made


async def test_a_session_goes_on_through_deaths_and_restarts_of_containers(
    composed: Composition,
) -> None:
    talk = Talk(composed.token())
    await _await_ready(composed)
    for name in ("server-1", "controller"):
        assert composed.inspected(name)["Config"]["User"] == "10001"
    await talk.start()
    await talk.turns("before")
    composed.kill("server-1")
    await talk.turns("one server died")
    await await_until(
        lambda: composed.restarts("server-1") == 1 and composed.health("server-1") == "healthy",
        _START_SECONDS,
        "the server to be started again",
    )
    for service in ("redis", "server-2", "proxy", "postgres"):
        composed.compose("restart", service)
        await talk.turns(f"restart of {service}")
    composed.kill("postgres")
    await talk.turns("the database died")
    await talk.call("send_command_input", session_id=talk.session_id, terminate=True)
    assert _SECRET not in composed.logs()


async def test_a_second_start_finds_what_the_first_one_made(composed: Composition) -> None:
    token, made = composed.token(), composed.bootstrapped()
    talk = Talk(token)
    await _await_ready(composed)
    await talk.start()
    composed.down()
    composed.up()
    await _await_ready(composed)
    assert (composed.token(), composed.bootstrapped()["token_file"]) == (token, made["token_file"])
    # The container of the controller is gone, and its programs with it.
    assert await _end_of(talk) == "lost"
    again = Talk(token)
    await again.start()
    await again.turns("second start")
    composed.down("--volumes")
    assert composed.left() == []


async def _await_ready(composed: Composition) -> None:
    certificate = composed.certificate()
    await await_until(lambda: composed.is_ready(certificate), _START_SECONDS, "a ready server")


async def _end_of(talk: Talk) -> str | None:
    """Return why a session is over, as soon as it is."""
    deadline = time.monotonic() + _START_SECONDS
    while True:
        found = await talk.call("read_session_output", session_id=talk.session_id)
        if found["state"] == "exited":
            return str(found["end_reason"])
        assert time.monotonic() < deadline, found
