"""What callers feel, and what runs on timers, costs the same however many rows are kept.

Every call below runs beside some ended sessions, monitors, runs, audit rows and so on, and again
beside five times as many. The database counts the work of each statement: a plan that sorts or
reads a table that grows does more work the second time, and fails.
"""

import re
from datetime import timedelta
from typing import Any, Final
from uuid import uuid4

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import connection
from django.test import Client
from django.utils import timezone

from agent.runs.records import run_claim
from projects import services
from projects.admin.parts import careful_filters
from projects.attention import worker as attention_worker
from projects.audit import marks
from projects.models import Controller, Project
from projects.models.attention_kinds import TELLABLE
from projects.reads import searched_streams
from projects.storage.access import in_database
from projects.upkeep import gauges, sweeper
from tests.support.databases.kept_rows import keep_ended
from tests.support.databases.statements import StatementRecorder
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

_WHY: Final = {
    "sessions_of_project": "a page of a project's sessions, or a search: newest first, to a limit",
    "sessions_of_controller": "a page of a host's sessions: newest first, to the limit",
    "active_sessions_of_project": "what is active in a project: no more than it has places",
    "session_by_controller_state": "what is active on a host",
    "active_sessions": "all that is active, for the sweeper and the metrics",
    "uncleared_sessions_of_kind": "output that was kept for long enough: oldest first, to a limit",
    "session_by_end": "sessions that ended in the last hour, or long enough ago to be removed",
    "projects_commandsession_created_at": "the page of all sessions: newest first, one page",
    "active_monitors_of_project": "the active monitors of a project, which are limited",
    "monitors_of_project": "a page of a project's monitors, or a search: newest first, to a limit",
    "monitors_by_start": "the page of all monitors: newest first, one page",
    "stopped_monitors_with_bytes": "stopped monitors whose bytes are still there",
    "unsettled_commands": "commands that wait for their host",
    "open_attention": "events that want a person now",
    "attention_to_tell": "events of which people are to be told",
    "messages_to_send": "messages to people that are still to be sent",
    "dead_letters": "messages to people that no target has received",
    "agent_run_by_state": "runs that wait for a worker",
    "agent_agentrun_created_at": "the page of all runs: newest first, one page",
}
"""The indexes by which statements pass over what is kept, and what each of them finds."""
_PAGES: Final = ("commandsession", "auditevent", "monitor", "controller", "project")
_SLACK: Final = 100
"""More work than that, for 500 more rows in each table, is work for the rows."""


async def _call_everything(controller: Controller) -> None:
    project, moment = controller.project_id, timezone.now() - timedelta(hours=2, seconds=50)
    for active_only in (False, True):
        for before in (None, moment):
            for host in (None, "host", "silent"):
                await services.session_list(
                    project, active_only=active_only, controller=host, before=before
                )
            await services.monitor_list(project, active_only=active_only, before=before)
    await services.controller_list(project)
    await services.output_search(project, "nowhere")
    await _take_a_turn(controller)
    await sweeper.sweep()
    await in_database(gauges.take)
    await in_database(attention_worker.look)
    await in_database(run_claim, 30.0)


async def _take_a_turn(controller: Controller) -> None:
    project = controller.project_id
    async with ActingHost(controller, on_start=lambda _: b"> "):
        started = await services.controller_start_interactive_command(
            project, "cat", controller="host", wait_seconds=5, request_id=uuid4()
        )
        session = started.session_id
        await services.controller_send_input(
            project, session, "abc\n", wait_seconds=5, request_id=uuid4()
        )
        await services.session_get(project, session, ordered_bytes=1000)
        await services.session_read_output(project, session)
        await services.session_digest(project, session)
        await services.controller_terminate_interactive_command(project, session, wait_seconds=5)


def _recorded(controller: Controller) -> StatementRecorder:
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE" if connection.vendor == "postgresql" else "SELECT 1")
    with StatementRecorder() as recorder:
        async_to_sync(_call_everything)(controller)
        client = Client()
        client.force_login(get_user_model().objects.get())
        for page in (*(f"projects/{name}" for name in _PAGES), "agent/agentrun"):
            assert client.get(f"/admin/{page}/").status_code == 200
    return recorder


def test_no_statement_does_more_work_beside_more_kept_rows(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.COMMAND_RETENTION_SECONDS = 3600
    # These read so many rows at once, and no more.
    monkeypatch.setattr(marks, "_MARKS_AT_ONCE", 10)
    monkeypatch.setattr(searched_streams, "MAX_OWNERS", 20)
    monkeypatch.setattr(careful_filters, "ROWS_FOR_CHOICES", 20)
    get_user_model().objects.create_superuser("operator")
    controller = make_controller(epoch=1, lease_expires_at=timezone.now() + timedelta(minutes=50))
    Project.objects.update(attention_seconds=dict.fromkeys(TELLABLE, 0))
    make_controller("silent", project=controller.project, epoch=1)
    make_session(controller)
    other = make_controller("other")
    # On SQLite what the other project has is newer: a page that is read in the order of all passes
    # it. PostgreSQL takes that order for a project with half of all sessions, since it believes
    # them to be spread evenly over time; here they are.
    earlier = 10_000 if connection.vendor == "sqlite" else 0
    keep_ended(other, range(1, 300, 2))
    keep_ended(controller, range(earlier + 2, earlier + 302, 2))
    few = _recorded(controller)
    keep_ended(other, range(1_001, 2_001, 2))
    keep_ended(controller, range(earlier + 2_002, earlier + 3_002, 2))
    many = _recorded(controller)

    grown = {
        statement: f"{few.work[statement]} -> {work}: {many.plan_of(statement)}"
        for statement, work in many.work.items()
        if statement in few.work and work > few.work[statement] + _SLACK
    }
    told = [
        f"{statement}\n{told}"
        for statement, told in grown.items()
        # A page of operators says how many rows there are.
        if not statement.startswith("SELECT COUNT(*) AS")
    ]
    assert not told, "\n\n".join(told)
    if connection.vendor == "sqlite":
        # PostgreSQL has several indexes to choose from, and chooses by how many rows there are.
        used = {
            re.sub("_[0-9a-f]{8}$", "", word)
            for statement in many.work
            for word in many.plan_of(statement).split()
        }
        assert set(_WHY) - used == set()
