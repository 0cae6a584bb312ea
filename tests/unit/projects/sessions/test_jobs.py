"""Jobs: submitted, asked after by offset, cut to their buffer, cleared."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from controller_client.protocol.messages import Failure, StartInteractiveCmd
from controller_client.protocol.session_state import SessionState
from projects.errors.limits import SessionLimitReached
from projects.errors.sessions import SessionActive, SessionNotFound
from projects.models import AuditEvent, CommandSession, Controller
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.sessions.jobs import job_clear, job_status, job_submit
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


async def _running(project_id: UUID, host: ActingHost, **options: Any) -> str:
    token = str(await job_submit(project_id, "work", **options))
    await await_until(
        lambda: any(getattr(c, "session_id", "") == token for c in host.commands),
        30,
        "the job to reach its host",
    )

    async def is_running() -> bool:
        return (await job_status(project_id, token)).status == "running"

    await await_until(is_running, 30, "the job to run")
    return token


def _stored(controller: Controller, size: int, *, chunk: int = 65_536, **fields: Any) -> str:
    session = make_session(
        controller, SessionState.EXITED, kind="job", stdout_next_offset=size, exit_code=0, **fields
    )
    line = b"0123456789abcde\n"
    data = line * (chunk // len(line))
    chunks = [
        NewChunk(session.id, "stdout", start, start, data[: min(chunk, size - start)])
        for start in range(0, size, chunk)
    ]
    output_log.append(chunks)
    return str(session.id)


@pytest.mark.requirement("S4.R6.1", "S4.R6.3", "S4.R6.4", "S4.R4.1")
async def test_a_job_uses_pipes_and_closed_input_unless_it_asks_for_a_terminal(
    project_id: UUID,
    controller: Controller,
) -> None:
    plain = await job_submit(project_id, "make")
    rich = await job_submit(
        project_id,
        "make",
        use_pty=True,
        timeout_seconds=3600,
        cwd="/tmp",
        buffer_bytes=100 * 1024 * 1024,
    )
    status = await job_status(project_id, str(plain))
    assert (status.token, status.status, status.stdout) == (str(plain), "pending", "")
    async with ActingHost(controller) as host:
        await await_until(lambda: len(host.commands) == 2, 30, "both jobs to reach the host")
    first, second = host.commands
    assert isinstance(first, StartInteractiveCmd)
    assert isinstance(second, StartInteractiveCmd)
    assert (first.io_mode, first.stdin, first.pipe_fallback, first.lifetime_seconds, first.cwd) == (
        "pipe",
        "closed",
        False,
        30,
        None,
    )
    assert (
        second.io_mode,
        second.stdin,
        second.pipe_fallback,
        second.lifetime_seconds,
        second.cwd,
    ) == ("pty", "open", True, 3600, "/tmp")
    rows = await in_database(
        lambda: dict(CommandSession.objects.values_list("id", "retained_bytes"))
    )
    assert (rows[plain], rows[rich]) == (10 * 1024 * 1024, 100 * 1024 * 1024)


@pytest.mark.requirement("S4.R2.1", "S4.R2.2", "S4.R2.3", "S4.R1.2", "S4.R5.1", "S4.R5.2")
async def test_a_running_job_shows_its_output_and_offsets_give_only_new_output(
    project_id: UUID, host: ActingHost
) -> None:
    token = await _running(project_id, host)
    await host.say(
        host.output(token, "é1\n".encode()), host.output(token, b"e1\n", stream="stderr")
    )
    first = await job_status(project_id, token)
    assert (first.status, first.stdout, first.stderr, first.stdout_length, first.stderr_length) == (
        "running",
        "é1\n",
        "e1\n",
        4,
        3,
    )
    await host.say(host.output(token, b"2\n"), host.output(token, b"e2\n", stream="stderr"))
    new = await job_status(
        project_id, token, stdout_offset=first.stdout_length, stderr_offset=first.stderr_length
    )
    assert (new.stdout, new.stderr, new.stdout_length, new.stderr_length) == ("2\n", "e2\n", 6, 6)
    everything = await job_status(project_id, token)
    assert (everything.stdout, everything.stderr) == ("é1\n2\n", "e1\ne2\n")
    assert (
        everything.exit_code,
        everything.execution_time,
        everything.timeout_occurred,
    ) == (None, None, False)


@pytest.mark.requirement("S4.R5.3")
async def test_an_offset_past_the_end_gives_nothing_and_the_length(
    project_id: UUID, host: ActingHost
) -> None:
    token = await _running(project_id, host)
    await host.say(host.output(token, b"abc\xc3"))
    past = await job_status(project_id, token, stdout_offset=10_000)
    assert (past.stdout, past.stdout_length) == ("", 3)
    await host.say(host.output(token, b"\xa9"), host.ended(token, exit_code=0))
    assert (await job_status(project_id, token, stdout_offset=3)).stdout == "é"
    assert (await job_status(project_id, token, stdout_offset=10_000)).stdout_length == 5


async def test_the_end_brings_exit_code_and_time(project_id: UUID, host: ActingHost) -> None:
    token = await _running(project_id, host)
    await host.say(host.ended(token, exit_code=3, duration_seconds=1.25))
    over = await job_status(project_id, token)
    assert (over.status, over.exit_code, over.execution_time, over.timeout_occurred) == (
        "completed",
        3,
        1.25,
        False,
    )


@pytest.mark.requirement("S4.R7.3")
async def test_a_timeout_keeps_what_was_printed(project_id: UUID, host: ActingHost) -> None:
    token = await _running(project_id, host, timeout_seconds=1)
    await host.say(
        host.output(token, b"partial\n"),
        host.ended(token, end_reason="timed_out", signal="SIGKILL"),
    )
    over = await job_status(project_id, token)
    assert (over.status, over.timeout_occurred, over.stdout, over.exit_code) == (
        "completed",
        True,
        "partial\n",
        -9,
    )


@pytest.mark.requirement("S4.R7.1")
async def test_a_job_that_could_not_be_started_says_why(project_id: UUID, host: ActingHost) -> None:
    host.on_start = lambda _: Failure(
        code="RESOURCE_EXHAUSTED", message="no terminal could be had", errno_name="ENOSPC"
    )
    token = str(await job_submit(project_id, "top", use_pty=True))

    async def is_over() -> bool:
        return (await job_status(project_id, token)).status == "completed"

    await await_until(is_over, 30, "the refusal")
    over = await job_status(project_id, token)
    assert (over.exit_code, over.error, over.error_code) == (
        None,
        "no terminal could be had (ENOSPC)",
        "RESOURCE_EXHAUSTED",
    )


@pytest.mark.requirement("S4.R3.4")
async def test_pipes_in_place_of_a_terminal_come_with_a_warning(
    project_id: UUID, controller: Controller
) -> None:
    session = await in_database(
        lambda: make_session(
            controller, kind="job", io_mode="pipe", warning="no terminal could be had: pipes"
        )
    )
    assert (
        await job_status(project_id, str(session.id))
    ).warning == "no terminal could be had: pipes"


@pytest.mark.requirement("S4.R4.2", "S4.R4.3")
@pytest.mark.parametrize("retained", [1024, 5_000, 100_000])
async def test_the_newest_output_is_kept_to_the_byte_and_truncation_is_shown(
    project_id: UUID,
    controller: Controller,
    retained: int,
) -> None:
    token = await in_database(lambda: _stored(controller, 200_000, retained_bytes=retained))
    status = await job_status(project_id, token)
    assert (
        len(status.stdout),
        status.stdout_length,
        status.stdout_truncated,
        status.stderr_truncated,
    ) == (retained, 200_000, True, False)
    assert status.stdout.endswith("abcde\n")
    assert (await job_status(project_id, token, stdout_offset=10)).stdout == status.stdout
    assert (
        await job_status(project_id, token, stdout_offset=199_984)
    ).stdout == "0123456789abcde\n"


@pytest.mark.requirement("S4.R5.4")
async def test_without_an_offset_everything_that_is_kept_comes(
    project_id: UUID, controller: Controller
) -> None:
    token = await in_database(
        lambda: _stored(controller, 3_000_000, retained_bytes=10 * 1024 * 1024)
    )
    status = await job_status(project_id, token)
    assert (len(status.stdout), status.stdout_truncated) == (3_000_000, False)


@pytest.mark.requirement("S4.R2.4")
@pytest.mark.parametrize("offset", [0, 2_900_000])
async def test_a_query_writes_nothing_and_reads_only_what_it_returns(
    project_id: UUID, controller: Controller, offset: int
) -> None:
    token = await in_database(
        lambda: _stored(controller, 3_000_000, retained_bytes=10 * 1024 * 1024)
    )

    def statements() -> list[str]:
        from projects.sessions.jobs import _status

        with CaptureQueriesContext(connection) as seen:
            _status(project_id, UUID(token), token, (offset, 0), "text")
        return [query["sql"] for query in seen]

    seen = await in_database(statements)
    assert all(sql.lstrip().startswith("SELECT") for sql in seen)
    chunk_reads = [sql for sql in seen if "projects_outputchunk" in sql]
    # A megabyte at a time, and one more to learn what came before an offset in mid-stream.
    assert len(chunk_reads) <= (3_000_000 - offset) // output_log.PIECE_BYTES + 2


@pytest.mark.requirement("S4.R4.4")
async def test_output_stays_until_it_is_cleared_and_then_the_token_is_unknown(
    project_id: UUID, controller: Controller
) -> None:
    token = await in_database(lambda: _stored(controller, 1000))
    assert len((await job_status(project_id, token)).stdout) == 1000
    for _ in range(2):
        await job_clear(project_id, UUID(token))
    assert (await job_status(project_id, token)).status == "not_found"
    assert (await in_database(output_log.read, UUID(token), "stdout", 0, 1000)).data == b""
    assert await in_database(AuditEvent.objects.filter(action="session.clear").count) == 1


async def test_a_running_job_cannot_be_cleared(project_id: UUID, controller: Controller) -> None:
    session = await in_database(lambda: make_session(controller, kind="job"))
    with pytest.raises(SessionActive):
        await job_clear(project_id, session.id)
    with pytest.raises(SessionNotFound):
        await job_clear(project_id, uuid4())


async def test_what_is_no_job_of_this_project_is_not_found(
    project_id: UUID, controller: Controller
) -> None:
    foreign = await in_database(lambda: make_session(make_controller("other"), kind="job"))
    interactive = await in_database(lambda: make_session(controller))
    for token in ("", "nope", str(uuid4()), str(foreign.id), str(interactive.id)):
        assert (await job_status(project_id, token)).status == "not_found"


async def test_jobs_have_places_of_their_own(
    project_id: UUID, host: ActingHost, settings: Any
) -> None:
    settings.MAX_BACKGROUND_SESSIONS = 1
    await job_submit(project_id, "a")
    with pytest.raises(SessionLimitReached) as refused:
        await job_submit(project_id, "b")
    assert "allows 1 job session at a time" in str(refused.value)


async def test_a_repeated_submission_is_the_same_job(project_id: UUID, host: ActingHost) -> None:
    request_id = uuid4()
    assert await job_submit(project_id, "a", request_id=request_id) == await job_submit(
        project_id, "a", request_id=request_id
    )
