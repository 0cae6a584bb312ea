"""The sweeper notices starts that no host took, lost hosts, and output over its limit."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from controller_client.protocol.messages import SendInput, StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.models import AuditEvent, CommandSession, ControllerCommand
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.sessions import outbox
from projects.storage import clock
from projects.storage.access import in_database
from projects.upkeep import sweeper
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)

NOW_AND_THEN = [
    ("online", timedelta(seconds=30)),
    ("away", timedelta(seconds=-30)),
    ("never seen", None),
]


def _session(
    state: SessionState,
    *,
    lease: timedelta | None,
    started_ago: float | None = None,
    start_expired_ago: float | None = None,
) -> Any:
    now = timezone.now()
    controller = make_controller(lease_expires_at=now + lease if lease is not None else None)
    started_at = now - timedelta(seconds=started_ago) if started_ago is not None else None
    session = make_session(controller, state, started_at=started_at, lifetime_seconds=60.0)
    if start_expired_ago is not None:
        seq = outbox.allocate_seq(controller.id)
        message = StartInteractiveCmd(seq=seq, session_id=str(session.id), command="cat")
        expires_at = now - timedelta(seconds=start_expired_ago)
        outbox.enqueue(
            controller_id=controller.id,
            session_id=session.id,
            message=message,
            expires_at=expires_at,
        )
    return session


async def _state_after_sweep(*args: Any, **kwargs: Any) -> str:
    session = await in_database(_session, *args, **kwargs)
    await sweeper.sweep()
    return (await in_database(CommandSession.objects.get, id=session.id)).state


@pytest.mark.parametrize(
    "lease", [lease for _, lease in NOW_AND_THEN], ids=[name for name, _ in NOW_AND_THEN]
)
async def test_a_start_that_was_never_taken_in_time_expires(lease: timedelta | None) -> None:
    assert (
        await _state_after_sweep(SessionState.PENDING, lease=lease, start_expired_ago=1)
        == "EXPIRED"
    )


async def test_a_start_with_time_left_is_waited_for() -> None:
    assert (
        await _state_after_sweep(SessionState.PENDING, lease=None, start_expired_ago=-10)
        == "PENDING"
    )


@pytest.mark.parametrize(
    "lease", [lease for _, lease in NOW_AND_THEN], ids=[name for name, _ in NOW_AND_THEN]
)
@pytest.mark.parametrize(("made_ago", "state"), [(100, "SENT"), (140, "LOST")])
async def test_a_start_that_was_sent_never_counts_as_not_started(
    lease: timedelta | None, made_ago: float, state: str
) -> None:
    session = await in_database(_session, SessionState.SENT, lease=lease, start_expired_ago=600)
    made_at = timezone.now() - timedelta(seconds=made_ago)
    await in_database(lambda: CommandSession.objects.update(created_at=made_at))
    await sweeper.sweep()
    await in_database(session.refresh_from_db)
    assert (session.state, session.failure_code) == (state, "START_LOST" if state == "LOST" else "")


@pytest.mark.requirement("S3.R3.3")
@pytest.mark.parametrize(
    ("lease", "started_ago", "state"),
    [
        (timedelta(seconds=30), 1000, "RUNNING"),
        (timedelta(seconds=-1), 70, "RUNNING"),
        (timedelta(seconds=-1), 100, "LOST"),
    ],
    ids=["online: the holder ends it", "away, lifetime not over", "away, lifetime over"],
)
async def test_a_program_is_lost_once_its_lifetime_ends_on_an_offline_host(
    lease: timedelta, started_ago: float, state: str
) -> None:
    assert (
        await _state_after_sweep(SessionState.RUNNING, lease=lease, started_ago=started_ago)
        == state
    )


async def test_output_over_the_limit_is_trimmed(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.OUTPUT_RETAINED_BYTES = 1000
    monkeypatch.setattr(output_log, "TRIM_SLACK_BYTES", 100)
    session = await in_database(
        _session, SessionState.RUNNING, lease=timedelta(seconds=30), started_ago=1
    )

    def store() -> None:
        output_log.append(
            [NewChunk(session.id, "stdout", i * 100, i, b"x" * 100) for i in range(30)]
        )
        CommandSession.objects.update(stdout_next_offset=3000)

    await in_database(store)
    await sweeper.sweep()
    assert (
        await in_database(CommandSession.objects.get, id=session.id)
    ).stdout_first_offset == 2000


async def test_it_runs_once_however_often_it_is_asked_for(settings: Any) -> None:
    settings.SWEEP_SECONDS = 0.05
    session = await in_database(_session, SessionState.PENDING, lease=None, start_expired_ago=1)
    before = {task.get_name() for task in asyncio.all_tasks()}
    for _ in range(5):
        sweeper.ROUNDS.ensure_running()
    running = [task for task in asyncio.all_tasks() if task.get_name() == "sweeper"]
    assert (before & {"sweeper"}, len(running)) == (set(), 1)

    async def is_expired() -> bool:
        return (await in_database(CommandSession.objects.get, id=session.id)).state == "EXPIRED"

    await await_until(is_expired, 30, "the sweeper to find it")
    running[0].cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def test_a_background_session_nobody_asks_for_is_ended_by_idle(settings: Any) -> None:
    settings.BACKGROUND_IDLE_SECONDS = 60
    long_ago = timezone.now() - timedelta(seconds=61)
    controller = await in_database(
        lambda: make_controller(lease_expires_at=timezone.now() + timedelta(minutes=5))
    )
    idle = await in_database(
        lambda: make_session(controller, kind="background", touched_at=long_ago)
    )
    others = [
        await in_database(lambda: make_session(controller, kind="background")),
        await in_database(
            lambda: make_session(controller, kind="interactive", touched_at=long_ago)
        ),
        await in_database(lambda: make_session(controller, kind="job", touched_at=long_ago)),
    ]
    for _ in range(2):
        await sweeper.sweep()
    await in_database(idle.refresh_from_db)
    assert idle.ended_by == "idle"
    commands = await in_database(
        lambda: list(ControllerCommand.objects.values_list("session_id", "type"))
    )
    assert commands == [(idle.id, "TERMINATE_CMD")]
    for session in others:
        await in_database(session.refresh_from_db)
        assert session.ended_by == ""
    event = await in_database(lambda: AuditEvent.objects.get(session_id=idle.id))
    assert (event.actor, event.action, event.detail) == (
        "sweeper",
        "session.terminate",
        {"reason": "idle"},
    )


async def test_output_past_its_time_is_cleared_in_the_end(settings: Any) -> None:
    settings.COMMAND_RETENTION_SECONDS = 60
    controller = await in_database(make_controller)
    long_ago = timezone.now() - timedelta(seconds=61)

    def ended(kind: str, ended_at: Any) -> CommandSession:
        session = make_session(
            controller, SessionState.EXITED, kind=kind, ended_at=ended_at, stdout_next_offset=3
        )
        output_log.append([NewChunk(session.id, "stdout", 0, 1, b"abc")])
        return session

    kept = [
        await in_database(ended, "job", timezone.now()),
        await in_database(ended, "interactive", long_ago),
    ]
    expired = [
        await in_database(ended, kind, long_ago) for kind in ("job", "background", "one_shot")
    ]
    await sweeper.sweep()
    for session, data in [
        *((session, b"abc") for session in kept),
        *((session, b"") for session in expired),
    ]:
        found = await in_database(output_log.read, session.id, "stdout", 0, 10)
        await in_database(session.refresh_from_db)
        assert (found.data, session.cleared_at is None) == (data, data == b"abc")


async def test_each_stream_of_a_session_is_trimmed_to_the_sessions_own_limit() -> None:
    controller = await in_database(make_controller)
    size, count = 64 * 1024, 8

    def flooded() -> CommandSession:
        session = make_session(controller, retained_bytes=1024, stderr_next_offset=size * count)
        output_log.append(
            [NewChunk(session.id, "stderr", n * size, n, b"x" * size) for n in range(count)]
        )
        return session

    session = await in_database(flooded)
    await sweeper.sweep()
    await in_database(session.refresh_from_db)
    assert (session.stdout_first_offset, session.stderr_first_offset) == (0, size * (count - 1))


async def test_after_a_jump_of_the_clock_nothing_is_taken_away_for_its_age(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.BACKGROUND_IDLE_SECONDS = settings.COMMAND_RETENTION_SECONDS = 60
    controller = await in_database(
        lambda: make_controller(lease_expires_at=timezone.now() - timedelta(hours=1))
    )
    begun = timezone.now()
    idle = await in_database(
        lambda: make_session(
            controller, kind="background", touched_at=begun, started_at=begun, lifetime_seconds=60.0
        )
    )
    ended = await in_database(
        lambda: make_session(controller, SessionState.EXITED, kind="job", ended_at=begun)
    )
    real = clock.now_seconds
    monkeypatch.setattr(clock, "now_seconds", lambda: real() + 3600.0)
    monkeypatch.setattr(clock, "now", lambda: timezone.now() + timedelta(hours=1))
    await sweeper.sweep()
    for session in (idle, ended):
        await in_database(session.refresh_from_db)
    assert (idle.state, idle.ended_by, ended.cleared_at) == ("RUNNING", "", None)


def test_a_session_with_many_commands_is_looked_at_once() -> None:
    session = _session(
        SessionState.RUNNING, lease=timedelta(seconds=-30), started_ago=10, start_expired_ago=5
    )
    for number in range(1, 4):
        seq = outbox.allocate_seq(session.controller_id)
        message = SendInput(seq=seq, session_id=str(session.id), input_seq=number, data=b"x")
        outbox.enqueue(controller_id=session.controller_id, session_id=session.id, message=message)
    assert sweeper.overdue_sessions() == [session.id]


async def test_the_end_of_an_idle_session_locks_the_host_first(settings: Any) -> None:
    settings.BACKGROUND_IDLE_SECONDS = 60
    long_ago = timezone.now() - timedelta(seconds=61)

    def ended() -> list[str]:
        session = make_session(make_controller(), kind="background", touched_at=long_ago)
        with CaptureQueriesContext(connection) as queries:
            sweeper.end_idle(session.project_id, session.id)
        return [query["sql"] for query in queries if "projects_" in query["sql"]]

    first, second, *_ = await in_database(ended)
    assert 'FROM "projects_controller"' in first
    assert 'FROM "projects_commandsession"' in second
