"""Whoever ends all sessions finds those whose start has begun, and ends later ones as well."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core.management import CommandError, call_command
from django.db import connection, transaction

from projects import services
from projects.models import CommandSession, Controller, Project
from projects.sessions.selectors import IS_ACTIVE, found_after_starts, locked_session_limits_of
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def host() -> Controller:
    return Controller.objects.create(project=Project.objects.create(name="acme"), name="web-1")


def test_a_look_waits_for_the_start_that_has_begun(host: Controller) -> None:
    has_begun, may_commit = threading.Event(), threading.Event()

    def start() -> CommandSession:
        try:
            with transaction.atomic():
                locked_session_limits_of(host.project_id)
                session = make_session(host)
                has_begun.set()
                may_commit.wait(60)
            return session
        finally:
            connection.close()

    def let_commit(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        # The look asks for the lock of the project here, or for that of all of SQLite.
        if "FOR NO KEY UPDATE" in sql or sql.startswith("BEGIN"):
            may_commit.set()
        return execute(sql, *rest)

    with ThreadPoolExecutor(1) as thread:
        started = thread.submit(start)
        has_begun.wait(60)
        active = CommandSession.objects.filter(IS_ACTIVE, controller=host)
        try:
            with connection.execute_wrapper(let_commit):
                found = found_after_starts(host.project_id, active)
        finally:
            may_commit.set()
        assert found == [started.result()]


def test_the_command_ends_what_starts_while_others_end(
    host: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[list[Any]] = []
    sessions = [make_session(host).pk]

    async def end(ids: list[Any], *, actor: str) -> list[str]:
        rounds.append([session for _, session in ids])
        if len(sessions) == 1:
            sessions.append((await sync_to_async(make_session)(host)).pk)
        return ["" for _ in ids]

    monkeypatch.setattr(services, "sessions_terminate", end)
    call_command("end_sessions", "acme", stdout=(out := StringIO()))
    assert rounds == [[session] for session in sessions]
    assert out.getvalue().count("ended: ") == 2


def test_the_command_fails_if_sessions_go_on_starting(
    host: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def end(ids: list[Any], *, actor: str) -> list[str]:
        await sync_to_async(make_session)(host)
        return ["" for _ in ids]

    make_session(host)
    monkeypatch.setattr(services, "sessions_terminate", end)
    with pytest.raises(CommandError, match="go on starting"):
        call_command("end_sessions", "acme", stdout=StringIO())
