"""The states of a route: each handles commands and messages its own way and leads to others."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.policy.input_guard import InputGuard
from controller_client.protocol.messages import (
    CommandAck,
    DoneAck,
    HolderAttach,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    PauseLifetime,
    SessionFound,
    StartInteractiveCmd,
    TerminateCmd,
)
from controller_client.server_link import session_route
from controller_client.server_link.holders.aftermath import Aftermath
from controller_client.server_link.holders.dead_holder import DeadHolder
from controller_client.server_link.holders.leftovers import Leftovers
from controller_client.server_link.route_states import (
    Attached,
    Detached,
    Live,
    Unreachable,
    Unwanted,
)
from controller_client.server_link.session_route import SessionRoute
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from controller_client.system.adoption import Left


class End:
    """Either end of a route, with what was sent through it."""

    def __init__(self) -> None:
        self.sent: list[Any] = []

    def send(self, *messages: Message) -> None:
        self.sent += messages

    def send_output(self, _session_id: str, message: Message) -> None:
        self.sent.append(message)

    def discard_queued(self, _session_id: str) -> None:
        pass

    def close(self) -> None:
        self.sent.append("closed")


@pytest.fixture
def directory(tmp_path: Path) -> SessionDirectory:
    session_id = str(uuid4())
    assert create(tmp_path, StartInteractiveCmd(seq=1, session_id=session_id, command="true"))
    return directory_of(tmp_path, session_id)


class Route(SessionRoute):
    """A route on a directory without a holder; ``forgotten`` are the ids it was forgotten under.

    ``ended`` are the sessions whose processes were looked for after their holder's death.
    """

    def __init__(self, directory: SessionDirectory) -> None:
        self.forgotten: list[str] = []
        self.ended: list[str] = []
        aftermath = Aftermath(directory, None, self._adopted_of, Leftovers(directory))
        guard = InputGuard.__new__(InputGuard)
        super().__init__(directory, guard, aftermath, self.forgotten.append)

    async def _adopted_of(self, session_id: str) -> Left:
        if session_id not in self.ended:
            self.ended.append(session_id)
        return Left([], is_all=True)

    def live(self, *, knows_lifetime: bool = True) -> End:
        """Make a holder answer; what is sent to it."""
        holder = End()
        self._holder = Live(holder, knows_lifetime)
        return holder

    def attach(self) -> End:
        """Connect the server; what is sent to it."""
        server = End()
        self.connect(server, {}, 1 << 18, is_found_awaited=True)
        return server

    async def end_of_task(self) -> None:
        """Wait until the route's task, and the one it starts, are done."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])


@pytest.fixture
def route(directory: SessionDirectory) -> Route:
    return Route(directory)


@pytest.mark.parametrize(
    ("knows", "passes"),
    [(True, True), (False, False)],
    ids=["a holder of today", "one from before"],
)
async def test_a_lifetime_pause_goes_only_to_holders_that_know_it(
    route: Route,
    knows: bool,
    passes: bool,
) -> None:
    holder = route.live(knows_lifetime=knows)
    server = route.attach()
    pause = PauseLifetime(seq=4, session_id=route.session_id, is_paused=True, max_seconds=60)
    end = TerminateCmd(seq=5, session_id=route.session_id)
    route.command(pause)
    route.command(end)
    assert holder.sent[1:] == ([pause, end] if passes else [end])
    refused = [(answer.command_seq, answer.failure.code) for answer in server.sent]
    assert refused == ([] if passes else [(4, "HOLDER_TOO_OLD")])


async def test_commands_wait_for_the_holder_and_follow_its_attach(route: Route) -> None:
    end = TerminateCmd(seq=5, session_id=route.session_id)
    route.command(end)
    holder = route.live()
    route.attach()
    assert isinstance(holder.sent[0], HolderAttach)
    assert holder.sent[1:] == [end]


async def test_a_dead_holder_is_found_before_its_end_is_reported(route: Route) -> None:
    server = route.attach()
    route.command(TerminateCmd(seq=5, session_id=route.session_id))
    await route.end_of_task()
    assert isinstance(route._holder, DeadHolder)
    kinds = [type(message) for message in server.sent]
    assert kinds == [SessionFound, CommandAck, InteractiveCmdDone]
    assert server.sent[1].failure is None
    assert server.sent[2].end_reason == "lost"
    route.settle()
    assert isinstance(route._holder, Unreachable)
    assert route.forgotten == [route.session_id]


async def test_a_directory_that_is_gone_ends_the_search(
    route: Route,
    directory: SessionDirectory,
) -> None:
    directory.remove()
    server = route.attach()
    await route.end_of_task()
    assert [type(message) for message in server.sent] == [SessionFound, InteractiveCmdDone]
    assert server.sent[1].end_reason == "lost"
    assert route.ended == [route.session_id]
    assert route.forgotten == [route.session_id]


async def test_a_holder_that_hangs_up_is_searched_for(route: Route) -> None:
    route.live()
    server = route.attach()
    route._on_holder_closed()
    assert isinstance(route._holder, Unreachable)
    await route.end_of_task()
    assert isinstance(route._holder, DeadHolder)
    assert isinstance(server.sent[-1], InteractiveCmdDone)
    route.disconnect()


async def test_a_settled_holder_that_hangs_up_is_forgotten(route: Route) -> None:
    holder = route.live()
    route.attach()
    route.settle()
    assert holder.sent[-1] == DoneAck(session_ids=[route.session_id], id=holder.sent[-1].id)
    route._on_holder_closed()
    assert route._task is None
    assert route.forgotten == [route.session_id]


async def test_an_unwanted_session_is_ended_and_answered_for_the_server(route: Route) -> None:
    holder = route.live()
    route.forget()
    assert [type(message) for message in holder.sent] == [HolderAttach, TerminateCmd]
    output = InteractiveOutput(
        session_id=route.session_id,
        stream="stdout",
        seq=1,
        offset=0,
        data=b"bye",
    )
    route._on_holder(output)
    assert holder.sent[-1].offsets[0].offset == 3
    route._on_holder(InteractiveCmdDone(session_id=route.session_id, end_reason="exited"))
    assert isinstance(holder.sent[-1], DoneAck)
    route._on_holder_closed()
    assert route.forgotten == [route.session_id]


async def test_an_unwanted_session_with_a_dead_holder_is_removed(
    route: Route,
    directory: SessionDirectory,
) -> None:
    route.forget()
    assert isinstance(route._server, Unwanted)
    await route.end_of_task()
    assert route.ended == [directory.session_id]
    assert not directory.path.exists()
    assert route.forgotten == [route.session_id]


async def test_an_unwanted_session_is_ended_although_its_holder_dies(
    route: Route, directory: SessionDirectory
) -> None:
    route.live()
    route.forget()
    route._on_holder_closed()
    await route.end_of_task()
    assert route.ended == [directory.session_id]
    assert not directory.path.exists()
    assert route.forgotten == [route.session_id]


async def test_the_end_of_the_connection_leaves_no_state_behind(route: Route) -> None:
    holder = route.live()
    route.attach()
    route.disconnect()
    assert holder.sent[-1] == "closed"
    assert isinstance(route._holder, Unreachable)
    assert isinstance(route._server, Detached)
    route.attach()
    route.command(TerminateCmd(seq=5, session_id=route.session_id))
    route.disconnect()
    assert route._task is None
    assert route._waiting == []


async def test_a_second_request_does_not_start_a_second_search(
    route: Route,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_route, "SEARCH_SECONDS", (60.0,))
    route.attach()
    first = route._task
    route.attach()
    assert route._task is first
    assert isinstance(route._server, Attached)
    route.disconnect()
