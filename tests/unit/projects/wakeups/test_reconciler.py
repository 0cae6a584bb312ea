"""Work that no doorbell rang for is found by one look for all controllers of the process."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from prometheus_client import REGISTRY

from controller_client.protocol.messages import Message, ReadFile, Resize
from projects.link.inbound.commands import take_commands
from projects.models import Controller, ControllerCommand
from projects.monitors import questions as file_questions
from projects.sessions import outbox
from projects.storage.access import in_database
from projects.wakeups import doorbells, serving
from projects.wakeups import reconciler as safety_net
from projects.wakeups.serving import Served
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

DEADLINE_SECONDS = 20


def _lost() -> float:
    return REGISTRY.get_sample_value("holdline_doorbells_lost_total", {"kind": "command"}) or 0.0


def _command(controller: Controller) -> None:
    seq = outbox.allocate_seq(controller.id)
    session = make_session(controller)
    outbox.enqueue(
        controller_id=controller.id,
        session_id=session.id,
        message=Resize(seq=seq, session_id=str(session.id), rows=1, cols=1),
    )


@pytest.fixture
async def controller() -> Controller:
    return await in_database(
        lambda: make_controller(
            epoch=1, capabilities=["files"], lease_expires_at=timezone.now() + timedelta(hours=1)
        )
    )


async def _is_rung(bell: doorbells.Doorbell) -> bool:
    """Rings are heard before ``look`` returns."""
    return bool(await bell.wait(0.0))


async def test_a_command_nobody_rang_for_rings_its_controller_and_no_other(
    controller: Controller,
) -> None:
    other = await in_database(make_controller, "other", epoch=1)
    async with (
        doorbells.controller_doorbell(controller.id) as bell,
        doorbells.controller_doorbell(other.id) as silent,
    ):
        await safety_net.look()
        assert not await _is_rung(bell)
        await in_database(_command, controller)
        await safety_net.look()
        assert await _is_rung(bell)
        await in_database(take_commands, controller.id, 1)
        await safety_net.look()
        assert (await _is_rung(bell), await _is_rung(silent)) == (False, False)


async def test_unsettled_commands_of_an_earlier_connection_are_found_too(
    controller: Controller,
) -> None:
    await in_database(_command, controller)
    await in_database(take_commands, controller.id, 1)
    await in_database(lambda: Controller.objects.update(epoch=2))
    async with doorbells.controller_doorbell(controller.id) as bell:
        await safety_net.look()
        assert await _is_rung(bell)


async def test_only_what_is_older_than_a_ring_takes_counts_as_lost(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safety_net, "IN_FLIGHT", timedelta(hours=1))
    before = _lost()
    await in_database(_command, controller)
    await safety_net.look()
    async with doorbells.controller_doorbell(controller.id):
        await safety_net.look()
        assert _lost() == before
        await in_database(
            lambda: ControllerCommand.objects.update(created_at=timezone.now() - timedelta(hours=2))
        )
        await safety_net.look()
        assert _lost() == before + 1


async def test_a_question_about_a_file_is_found(controller: Controller) -> None:
    async with doorbells.Doorbell(doorbells.files_group(controller.id)) as bell:
        await in_database(file_questions._insert, controller.id, ReadFile(path="/var/log/x"), 60.0)
        await safety_net.look()
        assert await _is_rung(bell)


class _Connection:
    """A connection that has sent nothing yet."""

    sent_up_to = 0

    def takes(self, command: Message) -> bool:
        return False

    def hand_over(self, command: Message) -> None:
        pass


async def test_a_connection_that_is_behind_or_fenced_is_told_to_look(
    controller: Controller,
) -> None:
    async with doorbells.controller_doorbell(controller.id) as bell:
        with serving.serving(Served(controller.id, 1), _Connection()):
            await safety_net.look()
            assert not await _is_rung(bell)
            await in_database(lambda: Controller.objects.update(last_command_seq=1))
            await safety_net.look()
            assert await _is_rung(bell)
            await in_database(lambda: Controller.objects.update(last_command_seq=0))
            await in_database(lambda: Controller.objects.update(epoch=2))
            await safety_net.look()
            assert await _is_rung(bell)
        await safety_net.look()
        assert not await _is_rung(bell)


async def test_a_connection_hears_it_within_the_safety_nets_time(
    controller: Controller, settings: Any
) -> None:
    settings.SAFETY_NET_SECONDS = 0.02
    safety_net.ROUNDS.ensure_running()
    async with doorbells.controller_doorbell(controller.id) as bell:
        await in_database(_command, controller)
        async with asyncio.timeout(DEADLINE_SECONDS):
            await bell.rung()
    running = [task for task in asyncio.all_tasks() if task.get_name() == "safety net"]
    assert len(running) == 1
    running[0].cancel()
    await asyncio.gather(*running, return_exceptions=True)
