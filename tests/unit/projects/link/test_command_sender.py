"""A connection sends every command once, in order, whoever committed it and whatever got lost."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import Final, Literal, get_args
from uuid import UUID

import pytest
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller_client.protocol.messages import Message, Resize, SendInput, StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.link.command_sender import CommandSender
from projects.link.inbound.connection_memory import ConnectionMemory
from projects.link.inbound.leases import Lease
from projects.models import CommandSession, Controller, ControllerCommand, ControllerCredential
from projects.sessions import outbox
from projects.sessions.outbox import OutboxMessage
from projects.storage.access import in_database
from projects.wakeups import bus, reconciler, serving
from projects.wakeups.bus import exchange
from projects.wakeups.doorbells import controller_group
from tests.support.hosts.consumer_server import enrolled
from tests.support.rows import make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_SECONDS: Final = 60
_IS_FOREIGN: ContextVar[bool] = ContextVar("_IS_FOREIGN", default=False)
_names = count()

Fate = Literal["at once", "late", "lost", "foreign", "foreign, rung", "rolled back"]


class _Sender(CommandSender):
    """A sender to which some commands are handed over late, or not at all."""

    def __init__(self, lease: Lease, memory: ConnectionMemory) -> None:
        super().__init__(lease, memory=memory, send=self._note)
        self.sent: list[Message] = []
        self.fates: dict[int, Fate] = {}
        self._loop = asyncio.get_running_loop()

    async def _note(self, message: Message) -> None:
        self.sent.append(message)

    def hand_over(self, command: Message) -> None:
        assert isinstance(command, OutboxMessage)
        fate = self.fates.get(command.seq, "at once")
        if fate == "at once":
            super().hand_over(command)
        elif fate == "late":
            call = partial(super().hand_over, command)
            self._loop.call_soon_threadsafe(self._loop.call_later, 0.003, call)

    @property
    def numbers(self) -> list[int]:
        return [command.seq for command in self.sent if isinstance(command, OutboxMessage)]


@pytest.fixture(autouse=True)
def _foreign_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the connections of this process from commits of another one."""
    newest = serving.newest

    def newest_here(controller_id: UUID) -> object:
        return None if _IS_FOREIGN.get() else newest(controller_id)

    monkeypatch.setattr(serving, "newest", newest_here)
    # Listeners are rung once when there is a channel layer.
    monkeypatch.setattr(bus, "get_channel_layer", lambda: None)


def _host(epoch: int = 1) -> tuple[CommandSession, Lease]:
    controller, _ = enrolled(f"host {next(_names)}")
    Controller.objects.filter(id=controller.id).update(epoch=epoch)
    credential = ControllerCredential.objects.get(controller=controller)
    return make_session(controller), Lease(controller.id, epoch, credential.id)


@asynccontextmanager
async def _sending(lease: Lease, memory: ConnectionMemory | None = None) -> AsyncIterator[_Sender]:
    sender = _Sender(lease, memory or ConnectionMemory())
    task = asyncio.create_task(sender.send_commands())
    await await_until(
        lambda: serving.newest(lease.controller_id), DEADLINE_SECONDS, "the connection to serve"
    )
    try:
        yield sender
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class _Undone(Exception):
    pass


def _commit(session: CommandSession, sender: _Sender, fate: Fate) -> None:
    with transaction.atomic():
        seq = outbox.allocate_seq(session.controller_id)
        if fate != "rolled back":
            sender.fates[seq] = fate
        message = Resize(seq=seq, session_id=str(session.id), rows=1, cols=1)
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
        if fate == "rolled back":
            raise _Undone


async def _act(session: CommandSession, sender: _Sender, fate: Fate) -> None:
    _IS_FOREIGN.set(fate.startswith("foreign"))
    with suppress(_Undone):
        await in_database(_commit, session, sender, fate)
    if fate == "foreign, rung":
        exchange().ring_here(controller_group(session.controller_id))


async def _play(rounds: list[list[Fate]]) -> None:
    session, lease = await in_database(_host)
    async with _sending(lease) as sender:
        for fates in rounds:
            await asyncio.gather(*(_act(session, sender, fate) for fate in fates))
        total = sum(fate != "rolled back" for fates in rounds for fate in fates)

        async def has_all() -> bool:
            await reconciler.look()
            return len(sender.numbers) >= total

        await await_until(has_all, DEADLINE_SECONDS, "all commands to be sent")
        # What is late arrives now, and must not be sent a second time.
        await asyncio.wait_for(asyncio.shield(_late(sender)), DEADLINE_SECONDS)
        assert sender.numbers == list(range(1, total + 1))


async def _late(sender: _Sender) -> None:
    arrived = asyncio.Event()
    asyncio.get_running_loop().call_later(0.01, arrived.set)
    await arrived.wait()


_FATES: Final = st.sampled_from(get_args(Fate))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(_FATES, max_size=12), min_size=1, max_size=4))
def test_commands_of_many_committers_leave_once_and_in_order(rounds: list[list[Fate]]) -> None:
    asyncio.run(_play(rounds))


async def test_a_command_that_is_handed_over_is_marked_and_needs_no_look(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session, lease = await in_database(_host)
    async with _sending(lease) as sender:
        await _act(session, sender, "foreign, rung")
        await await_until(lambda: sender.numbers, DEADLINE_SECONDS, "the connection to look")
        monkeypatch.setattr(ConnectionMemory, "take_commands", None)
        await _act(session, sender, "at once")
        await await_until(lambda: len(sender.sent) == 2, DEADLINE_SECONDS, "the command")
        rows = await in_database(
            lambda: list(ControllerCommand.objects.values_list("sent_epoch", "is_sent_again"))
        )
        assert rows == [(1, False), (1, False)]


async def test_a_connection_that_was_replaced_is_handed_nothing() -> None:
    session, lease = await in_database(_host)
    async with _sending(lease) as sender:
        await in_database(lambda: Controller.objects.update(epoch=2))
        await _act(session, sender, "at once")
        (row,) = await in_database(lambda: list(ControllerCommand.objects.all()))
        assert (row.sent_epoch, sender.sent) == (None, [])


async def test_a_lost_hand_over_is_sent_again_by_the_next_connection() -> None:
    session, lease = await in_database(_host)
    async with _sending(lease) as sender:
        await _act(session, sender, "lost")
    await in_database(lambda: Controller.objects.update(epoch=2))
    async with _sending(lease._replace(epoch=2)) as sender:
        await await_until(lambda: sender.numbers == [1], DEADLINE_SECONDS, "the command")
    (row,) = await in_database(lambda: list(ControllerCommand.objects.all()))
    assert (row.sent_epoch, row.is_sent_again) == (2, True)


async def test_inputs_of_a_silent_holder_stay_in_the_outbox() -> None:
    session, lease = await in_database(_host)
    memory = ConnectionMemory()
    memory.awaited = {session.id}
    async with _sending(lease, memory) as sender:
        await in_database(_type, session)
        await _act(session, sender, "at once")
        await await_until(lambda: sender.numbers == [2], DEADLINE_SECONDS, "the other command")
        memory.found, memory.awaited = {session.id}, set()
        await in_database(_type, session)
        exchange().ring_here(controller_group(lease.controller_id))
        await await_until(lambda: sender.numbers == [2, 1, 3], DEADLINE_SECONDS, "the inputs")


def _type(session: CommandSession) -> None:
    with transaction.atomic():
        seq = outbox.allocate_seq(session.controller_id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=seq, data=b"a\n")
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)


async def test_a_start_that_is_handed_over_counts_as_sent() -> None:
    _, lease = await in_database(_host)

    def start() -> CommandSession:
        new = make_session(Controller.objects.get(id=lease.controller_id), SessionState.PENDING)
        with transaction.atomic():
            seq = outbox.allocate_seq(lease.controller_id)
            message = StartInteractiveCmd(seq=seq, session_id=str(new.id), command="cat")
            outbox.enqueue(controller_id=lease.controller_id, session_id=new.id, message=message)
        return CommandSession.objects.get(id=new.id)

    async with _sending(lease) as sender:
        new = await in_database(start)
        assert new.state == SessionState.SENT
        await await_until(lambda: sender.numbers == [1], DEADLINE_SECONDS, "the start")
