"""Retention: how long rows stay, and removal that holds up nobody."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from django.utils import timezone

from controller_client.protocol.messages import SendInput
from controller_client.protocol.session_state import SessionState
from projects.audit import proof as audit_proof
from projects.audit.log import audit
from projects.audit.proof import audit_verify
from projects.models import (
    AuditEvent,
    CommandSession,
    Controller,
    ControllerCommand,
    OutputChunk,
    Project,
    ReadCursor,
)
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.sessions import outbox
from projects.storage.access import in_database
from projects.upkeep import retention
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

T = TypeVar("T")
HOUR = 3600


@pytest.fixture(autouse=True)
def _policies(settings: Any) -> None:
    settings.COMMAND_RETENTION_SECONDS = HOUR
    settings.OUTPUT_RETENTION_SECONDS = 2 * HOUR
    settings.SESSION_RETENTION_SECONDS = 10 * HOUR
    settings.AUDIT_RETENTION_SECONDS = 100 * HOUR


def _ended(
    controller: Controller, hours: float, *, chunks: int = 1, **fields: Any
) -> CommandSession:
    ended_at = timezone.now() - timedelta(hours=hours)
    session = make_session(
        controller, SessionState.EXITED, ended_at=ended_at, stdout_next_offset=3 * chunks, **fields
    )
    output_log.append(
        [NewChunk(session.id, "stdout", 3 * number, number + 1, b"abc") for number in range(chunks)]
    )
    return session


async def _db(act: Callable[..., T], *args: Any, **fields: Any) -> T:
    return await in_database(act, *args, **fields)


def _left() -> dict[UUID, int]:
    """Bytes of output of each session that is there."""
    return {
        session_id: sum(
            OutputChunk.objects.filter(session_id=session_id).values_list("size", flat=True)
        )
        for session_id in CommandSession.objects.values_list("id", flat=True)
    }


async def test_a_project_may_keep_nothing_after_the_end() -> None:
    controller = await _db(make_controller)
    await _db(Project.objects.filter(id=controller.project_id).update, keeps_output=False)
    told = await _db(_ended, controller, 5 / HOUR)
    over = await _db(_ended, controller, 2 / 60, kind="one_shot", terminal_prompt="abc")
    others = await _db(_ended, await _db(make_controller, name="other"), 2 / 60)
    await retention.expire()
    assert await _db(_left) == {told.id: 3, over.id: 0, others.id: 3}
    await _db(over.refresh_from_db)
    assert over.terminal_prompt == ""
    rows = AuditEvent.objects.filter(action="session.clear")
    assert await _db(list, rows.values_list("session_id", flat=True)) == [over.id]


async def test_output_goes_by_kind_and_leaves_a_gap_and_a_word_in_the_audit_log() -> None:
    controller = await _db(make_controller)
    job, young = await _db(_ended, controller, 1.5, kind="job"), await _db(_ended, controller, 1.5)
    old, live = await _db(_ended, controller, 2.5), await _db(make_session, controller)
    await retention.expire()
    assert await _db(_left) == {job.id: 0, young.id: 3, old.id: 0, live.id: 0}
    found = await _db(output_log.read, old.id, "stdout", 0, 10)
    assert [(gap.from_offset, gap.to_offset, gap.reason) for gap in found.gaps] == [
        (0, 3, "retention")
    ]
    events = await _db(
        lambda: list(AuditEvent.objects.order_by("id").values_list("actor", "action", "session_id"))
    )
    assert events == [("sweeper", "session.clear", old.id), ("sweeper", "session.clear", job.id)]


async def test_a_session_goes_with_all_it_has_and_the_audit_log_remembers_it() -> None:
    controller = await _db(make_controller)
    old, kept = await _db(_ended, controller, 11), await _db(_ended, controller, 9)

    def add_parts() -> None:
        for input_seq in range(1, retention.ROWS_AT_ONCE + 2):
            seq = outbox.allocate_seq(controller.id)
            message = SendInput(seq=seq, session_id=str(old.id), input_seq=input_seq, data=b"x")
            outbox.enqueue(controller_id=controller.id, session_id=old.id, message=message)
        ReadCursor.objects.create(session=old, caller="somebody")

    await _db(add_parts)
    await retention.expire()
    assert list(await _db(_left)) == [kept.id]
    assert await _db(ControllerCommand.objects.count) == 0
    assert (
        await _db(
            lambda: (
                AuditEvent.objects.filter(session_id=old.id).values_list("action", flat=True).last()
            )
        )
        == "session.clear"
    )
    last = await _db(lambda: AuditEvent.objects.get(action="session.expire"))
    assert (last.session_id, last.controller_id, last.project_id) == (
        old.id,
        controller.id,
        controller.project_id,
    )


async def test_a_project_may_keep_longer_shorter_or_for_good() -> None:
    def hosts() -> list[Controller]:
        policies = {
            "shorter": (1800, 3 * HOUR),
            "longer": (20 * HOUR, 40 * HOUR),
            "for-good": (0, 0),
        }
        made = [
            Project.objects.create(
                name=name, output_retention_seconds=output, session_retention_seconds=session
            )
            for name, (output, session) in policies.items()
        ]
        return [make_controller(project.name, project=project) for project in made]

    shorter, longer, for_good = await _db(hosts)
    gone, cleared = await _db(_ended, shorter, 4), await _db(_ended, shorter, 1, kind="background")
    kept = [await _db(_ended, longer, 15), await _db(_ended, for_good, 1000)]
    await retention.expire()
    left = await _db(_left)
    assert gone.id not in left
    assert left == {cleared.id: 0, **{session.id: 3 for session in kept}}


async def test_a_server_whose_own_clock_is_ahead_removes_nothing_early(
    request: pytest.FixtureRequest,
) -> None:
    controller = await _db(make_controller)
    await _db(audit, "somebody", "session.start", (controller.project_id, controller.id, None))
    job = await _db(_ended, controller, 0, kind="job")
    request.getfixturevalue("days_ahead")
    await retention.expire()
    assert await _db(_left) == {job.id: 3}
    assert await _db(AuditEvent.objects.count) == 1


async def test_settings_of_zero_keep_for_good(settings: Any) -> None:
    settings.OUTPUT_RETENTION_SECONDS = settings.SESSION_RETENTION_SECONDS = (
        settings.AUDIT_RETENTION_SECONDS
    ) = 0
    controller = await _db(make_controller)
    old = await _db(_ended, controller, 100_000)
    await retention.expire()
    assert await _db(_left) == {old.id: 3}
    assert await _db(retention.chains_to_shorten) == []


async def test_a_round_has_its_end_and_the_next_one_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "ROUND_BATCHES", 2)
    batch = output_log.TRIM_CHUNKS_PER_TRANSACTION
    controller = await _db(make_controller)
    session = await _db(_ended, controller, 3, chunks=5 * batch)
    await retention.expire()
    assert await _db(_left) == {session.id: 3 * 3 * batch}
    await retention.expire()
    await retention.expire()
    assert await _db(_left) == {session.id: 0}


async def test_a_round_has_its_end_also_where_each_session_is_one_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "ROUND_BATCHES", 2)
    controller = await _db(make_controller)
    for _ in range(5):
        await _db(_ended, controller, 3)
    for left in (3, 1, 0):
        await retention.expire()
        assert sum((await _db(_left)).values()) == 3 * left


async def test_whoever_writes_meanwhile_comes_in_between() -> None:
    controller = await _db(make_controller)
    live = await _db(make_session, controller)
    await _db(_ended, controller, 3, chunks=100 * output_log.TRIM_CHUNKS_PER_TRANSACTION)
    expiring = asyncio.create_task(retention.expire())
    for number in range(5):
        await _db(output_log.append, [NewChunk(live.id, "stdout", number, number + 1, b"x")])
    assert not expiring.done()
    await expiring


async def test_audit_rows_go_from_the_beginning_and_the_rest_verifies(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit_proof, "EXPIRED_AT_ONCE", 2)
    controller = await _db(make_controller)
    about = (controller.project_id, controller.id, None)
    for _ in range(5):
        await _db(audit, "somebody", "session.start", about)
    settings.AUDIT_RETENTION_SECONDS = 0.001
    await retention.expire()
    verdict = await _db(audit_verify, controller.project_id)
    assert verdict.problems == ()
    assert verdict.expired >= 4
    assert await _db(lambda: AuditEvent.objects.filter(action="session.start").count()) <= 1
