"""A reader of a run leaves when they want to, and a refused answer does not end the reading."""

import io
import os
import signal
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from agent import services
from agent.management import live
from agent.models import AgentRun
from agent.views.console import Console
from agent.views.rendering import Line
from projects.errors.access import OwnCall
from projects.errors.server import StorageUnavailable
from projects.storage.access import in_database
from tests.support.rows import make_approval, make_controller

pytestmark = pytest.mark.django_db(transaction=True)


def _submitted() -> AgentRun:
    host = make_controller(lease_expires_at=timezone.now() + timedelta(hours=1))
    return services.run_submit(project=host.project, task="t", actor="test", model="scripted:demo")


async def test_a_reader_leaves_while_the_database_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    run = await in_database(_submitted)
    stream = io.StringIO()

    async def away(*_about: Any, **_fields: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        raise StorageUnavailable

    monkeypatch.setattr(live, "in_database", away)
    reader = live.Live(run.id, Console(stream), is_here=False, can_ask=False)
    assert await reader.to_its_end() == live.EXIT_DETACHED
    assert f"--follow {run.id}" in stream.getvalue()


async def test_a_reader_who_cannot_answer_is_told_of_the_page_in_the_console() -> None:
    def waiting() -> tuple[AgentRun, int]:
        run = _submitted()
        AgentRun.objects.update(state=AgentRun.State.WAITING)
        return run, make_approval(run.project, asked_by=f"agent:{run.id}").pk

    run, approval_id = await in_database(waiting)
    stream = io.StringIO()

    class Sink(Console):
        """A console whose reader stops the run once it is told where to answer."""

        def write(self, line: Line, *, goes_on: bool = False) -> None:
            super().write(line, goes_on=goes_on)
            if line.kind == "note":
                os.kill(os.getpid(), signal.SIGINT)

    reader = live.Live(run.id, Sink(stream), is_here=False, can_ask=False)
    assert await reader.to_its_end() == live.EXIT_DETACHED
    told = next(line for line in stream.getvalue().splitlines() if "waits for an answer" in line)
    assert f"/approvals/{approval_id}/" in told
    assert f"answer_approval {approval_id} --approve" in told
    assert "admin" not in told


async def test_a_refused_answer_is_said_and_the_run_followed_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def waiting() -> AgentRun:
        run = _submitted()
        AgentRun.objects.update(state=AgentRun.State.WAITING)
        make_approval(run.project, asked_by=f"agent:{run.id}")
        return run

    async def approves(_question: str, _is_settled: Callable[[], Awaitable[bool]]) -> str:
        return "y"

    def refuses(**_fields: Any) -> bool:
        services.run_stop(run_id=run.id, actor="another")
        raise OwnCall

    run = await in_database(waiting)
    stream = io.StringIO()
    monkeypatch.setattr(live, "answered", approves)
    monkeypatch.setattr(live, "approval_answer", refuses)
    reader = live.Live(run.id, Console(stream), is_here=False, can_ask=True)
    assert await reader.to_its_end() == live.EXIT_STOPPED
    assert OwnCall.code in stream.getvalue()


async def test_files_and_notices_are_told_before_the_terminal_asks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def waiting() -> AgentRun:
        run = _submitted()
        AgentRun.objects.update(state=AgentRun.State.WAITING)
        given = {"command": "perl -MDeploy ./tool"}
        files = [["/a/tool", "5e"]]
        make_approval(run.project, arguments=given, files=files, asked_by=f"agent:{run.id}")
        return run

    run = await in_database(waiting)
    stream = io.StringIO()
    seen: list[str] = []

    async def asks(_question: str, _is_settled: Callable[[], Awaitable[bool]]) -> str:
        seen.append(stream.getvalue())
        await in_database(services.run_stop, run_id=run.id, actor="another")
        return ""

    monkeypatch.setattr(live, "answered", asks)
    reader = live.Live(run.id, Console(stream), is_here=False, can_ask=True)
    assert await reader.to_its_end() == live.EXIT_STOPPED
    assert "  may run /a/tool (SHA-256 5e)\n" in seen[0]
    assert "cannot be told from the line" in seen[0]
