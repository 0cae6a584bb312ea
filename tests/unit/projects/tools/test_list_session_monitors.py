"""Monitors can be listed, so that one whose id was lost is found again."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from projects.accounts.authentication import SCOPES, Caller
from projects.models import Controller, Monitor
from projects.storage.access import in_database
from projects.tools.registry import tool_named
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db(transaction=True)


def _monitor(controller: Controller, *, minutes_ago: int, **fields: Any) -> Monitor:
    return Monitor.objects.create(
        project=controller.project,
        controller=controller,
        session_id=uuid4(),
        session_type="file",
        log_file=f"/var/log/{minutes_ago}.log",
        metadata={"host": "db"},
        started_at=timezone.now() - timedelta(minutes=minutes_ago),
        **fields,
    )


def _two_projects() -> tuple[Controller, list[Monitor]]:
    ours, theirs = make_controller("ours"), make_controller("theirs")
    _monitor(theirs, minutes_ago=1)
    made = [_monitor(ours, minutes_ago=minutes) for minutes in (5, 4, 3)]
    return ours, [*made, _monitor(ours, minutes_ago=2, status=Monitor.Status.STOPPED)]


async def test_active_monitors_of_the_project_are_listed_newest_first() -> None:
    controller, made = await in_database(_two_projects)
    caller = Caller(controller.project_id, "x", frozenset(SCOPES))
    tool = tool_named("list_session_monitors")
    first = (await tool.call({"limit": 2}, caller)).body
    assert [one["session_id"] for one in first["monitors"]] == [
        str(made[2].session_id),
        str(made[1].session_id),
    ]
    assert first["monitors"][0]["log_file"] == "/var/log/3.log"
    assert first["monitors"][0]["metadata"] == {"host": "db"}
    rest = (await tool.call({"limit": 2, "before": first["next_before"]}, caller)).body
    assert [one["session_id"] for one in rest["monitors"]] == [str(made[0].session_id)]
    assert rest["next_before"] is None
    everything = (await tool.call({"active_only": False}, caller)).body
    assert len(everything["monitors"]) == 4


async def test_only_a_page_that_has_a_next_one_names_it() -> None:
    controller, _ = await in_database(_two_projects)
    caller = Caller(controller.project_id, "x", frozenset(SCOPES))
    tool = tool_named("list_session_monitors")
    for limit, is_last in ((2, False), (3, True), (4, True)):
        page = (await tool.call({"limit": limit}, caller)).body
        assert len(page["monitors"]) == min(limit, 3)
        assert (page["next_before"] is None) == is_last
    oldest = (await tool.call({"limit": 3}, caller)).body["monitors"][-1]["start_time"]
    assert (await tool.call({"before": oldest}, caller)).body["monitors"] == []


async def test_an_unknown_monitor_is_answered_with_the_tool_that_lists_them() -> None:
    controller, _ = await in_database(_two_projects)
    caller = Caller(controller.project_id, "x", frozenset(SCOPES))
    for name in ("get_session_updates", "stop_session_monitor"):
        body = (await tool_named(name).call({"session_id": str(uuid4())}, caller)).body
        assert body["code"] == "SESSION_NOT_FOUND"
        assert "list_session_monitors" in body["hint"]
        assert "list_sessions" not in body["hint"]


@pytest.mark.parametrize("tool", ["list_session_monitors", "list_sessions"])
@pytest.mark.parametrize("before", ["9999-12-31T23:59:59-12:00", "0001-01-01T00:00:00+14:00"])
async def test_a_time_that_has_no_year_in_utc_is_refused(tool: str, before: str) -> None:
    caller = Caller(uuid4(), "x", frozenset(SCOPES))
    refused = await tool_named(tool).call({"before": before}, caller)
    assert refused.body["code"] == "INVALID_ARGUMENT"
    assert "years 1 to 9999" in refused.body["error"]
