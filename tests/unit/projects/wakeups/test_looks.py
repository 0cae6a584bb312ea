"""A batch looks for the calls that wait for its news, and loses nothing if a look fails."""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

import pytest
from django.db import connection

from controller_client.protocol.messages import InteractiveOutput, TerminalReport
from projects.errors.calls import InvalidArgument
from projects.link.inbound import batch
from projects.link.inbound.batch import BatchResult
from projects.models import CommandSession, OutputChunk
from projects.sessions import waiting
from projects.sessions.turns import Turn, take_turn
from projects.sessions.waiting import watch
from projects.storage.access import in_database
from projects.storage.shared import one_transaction
from projects.wakeups import bus, looks
from projects.wakeups.doorbells import ring_session, session_doorbell
from projects.wakeups.looks import MAX_LOOKS, take_looks
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")

DEADLINE_SECONDS: Final = 60.0


@pytest.fixture(autouse=True)
def _no_other_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the channel layer: listeners are rung once when it is there."""
    monkeypatch.setattr(bus, "get_channel_layer", lambda: None)


@pytest.fixture
async def session() -> CommandSession:
    return await in_database(lambda: make_session(make_controller(epoch=1)))


async def _print(session: CommandSession, data: bytes = b"> ", offset: int = 0) -> BatchResult:
    """Commit a prompt as the connection does, and ring those for whom the batch has not looked."""
    end = offset + len(data)
    verdict = TerminalReport(
        state="awaiting_input", offset=end, input_seq=0, kind="line", evidence="kernel"
    )
    frame = InteractiveOutput(
        session_id=str(session.id),
        stream="stdout",
        offset=offset,
        seq=1,
        data=data,
        terminal=verdict,
    )
    result = await in_database(batch.commit_batch, session.controller_id, 1, [frame])
    for session_id in result.rings:
        await ring_session(session_id, besides=result.looked)
    return result


async def _waiting(session: CommandSession, look: Callable[[bool], T | None]) -> T:
    async with session_doorbell(session.id) as bell:
        return await watch(bell, look, DEADLINE_SECONDS, look_first=False)


async def _begun(call: asyncio.Task[T]) -> asyncio.Task[T]:
    """The call, once it waits."""
    await asyncio.sleep(0)
    return call


async def test_a_turn_ends_by_the_look_of_the_batch_alone(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = Turn(session.project_id, session.id, from_offset=0, wait_seconds=DEADLINE_SECONDS)
    monkeypatch.setattr(waiting, "in_database", None)
    async with session_doorbell(session.id) as bell:
        call = await _begun(asyncio.create_task(take_turn(turn, bell, look_first=False)))
        result = await _print(session)
        answer = await asyncio.wait_for(call, DEADLINE_SECONDS)
    assert (answer.state, answer.output, answer.next_offset) == ("awaiting_input", "> ", 2)
    assert result.looked == {bell}
    row = await in_database(CommandSession.objects.get, id=session.id)
    assert row.shown_offset == 2
    assert looks._offers == {}


async def test_a_look_that_finds_nothing_is_taken_again(session: CommandSession) -> None:
    seen: list[int] = []

    def look(_is_last: bool) -> int | None:
        seen.append(OutputChunk.objects.filter(session=session).count())
        return seen[-1] if seen[-1] == 2 else None

    call = await _begun(asyncio.create_task(_waiting(session, look)))
    await _print(session)
    await _print(session, b"more> ", 2)
    assert await asyncio.wait_for(call, DEADLINE_SECONDS) == 2
    assert seen == [1, 2]


async def test_an_error_of_a_look_is_its_callers(session: CommandSession) -> None:
    def look(_is_last: bool) -> int:
        raise InvalidArgument(["seen"])

    call = await _begun(asyncio.create_task(_waiting(session, look)))
    result = await _print(session)
    with pytest.raises(InvalidArgument, match="seen"):
        await asyncio.wait_for(call, DEADLINE_SECONDS)
    assert len(result.acks) == 1


async def test_a_look_that_the_database_refuses_takes_no_output_with_it(
    session: CommandSession,
) -> None:
    tries: list[int] = []

    def look(_is_last: bool) -> int:
        tries.append(1)
        if len(tries) == 1:
            with connection.cursor() as cursor:
                cursor.execute("SELECT nothing FROM nowhere")
        return OutputChunk.objects.filter(session=session).count()

    call = await _begun(asyncio.create_task(_waiting(session, look)))
    result = await _print(session)
    assert (len(result.acks), result.looked) == (1, set())
    assert await asyncio.wait_for(call, DEADLINE_SECONDS) == 1
    assert len(tries) == 2


async def test_a_look_of_a_transaction_that_is_undone_does_not_count(
    session: CommandSession,
) -> None:
    call = await _begun(asyncio.create_task(_waiting(session, lambda _is_last: "found")))

    def take(*, is_undone: bool) -> None:
        with suppress(ZeroDivisionError), one_transaction():
            assert len(take_looks([str(session.id)])) == 1
            assert 1 / (not is_undone)

    await in_database(take, is_undone=True)
    await _begun(call)
    assert not call.done()
    await in_database(take, is_undone=False)
    assert await asyncio.wait_for(call, DEADLINE_SECONDS) == "found"


async def test_a_call_does_not_look_while_its_look_is_taken(session: CommandSession) -> None:
    found: list[str] = []

    def look(is_last: bool) -> str:
        found.append("by itself" if is_last else "by the batch")
        return found[-1]

    release, has_taken = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        with one_transaction():
            take_looks([str(session.id)])
            loop.call_soon_threadsafe(has_taken.set)
            release.wait(DEADLINE_SECONDS)

    async with session_doorbell(session.id) as bell:
        waits = asyncio.create_task(watch(bell, look, DEADLINE_SECONDS, look_first=False))
        await _begun(waits)
        holding = asyncio.create_task(in_database(hold))
        await has_taken.wait()
        await ring_session(session.id)
        for _ in range(10):
            await _begun(waits)
        release.set()
        await holding
        assert await asyncio.wait_for(waits, DEADLINE_SECONDS) == "by the batch"
    assert found == ["by the batch"]


async def test_a_batch_takes_no_more_looks_than_allowed(session: CommandSession) -> None:
    calls = [
        asyncio.create_task(_waiting(session, lambda _is_last: "found"))
        for _ in range(MAX_LOOKS + 3)
    ]
    await _begun(calls[-1])
    result = await _print(session)
    assert 0 < len(result.looked) <= MAX_LOOKS
    assert await asyncio.wait_for(asyncio.gather(*calls), DEADLINE_SECONDS) == ["found"] * len(
        calls
    )
