"""The lifetime of an interactive session, as its project or the settings limit it."""

import importlib
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError

from controller_client.protocol.messages import StartInteractiveCmd
from projects.errors.limits import LifetimeTooLong, SessionLimitReached
from projects.models import CommandSession, Controller, Project
from projects.sessions.background import background_start
from projects.sessions.interactive import controller_start_interactive_command
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"$ ") as acting:
        yield acting


async def _set(project_id: UUID, **limits: Any) -> None:
    await in_database(Project.objects.filter(id=project_id).update, **limits)


async def _lifetime(project_id: UUID, asked: float | None) -> float:
    started = await controller_start_interactive_command(project_id, "true", lifetime_seconds=asked)
    row = await in_database(CommandSession.objects.get, id=started.session_id)
    return float(row.lifetime_seconds)


@pytest.mark.requirement("S3.R3.3")
@pytest.mark.parametrize(
    ("limits", "asked", "given"),
    [
        ({}, None, 300),
        ({}, 300, 300),
        ({}, 7, 7),
        ({"default_lifetime_seconds": 60}, None, 60),
        ({"default_lifetime_seconds": 60}, 300, 300),
        ({"max_lifetime_seconds": 100}, None, 100),
        ({"max_lifetime_seconds": 3600}, None, 300),
        ({"max_lifetime_seconds": 3600}, 3600, 3600),
        ({"default_lifetime_seconds": 900, "max_lifetime_seconds": 3600}, None, 900),
        # Set past the form: the maximum is kept all the same.
        ({"default_lifetime_seconds": 900}, None, 300),
    ],
)
async def test_a_session_gets_the_lifetime_its_project_allows(
    project_id: UUID, host: ActingHost, limits: dict[str, int], asked: float | None, given: float
) -> None:
    await _set(project_id, max_interactive_sessions=2, **limits)
    assert await _lifetime(project_id, asked) == given
    (start,) = host.commands
    assert isinstance(start, StartInteractiveCmd)
    assert start.lifetime_seconds == given


@pytest.mark.requirement("S3.R3.3")
@pytest.mark.parametrize(
    ("limits", "asked"),
    [({}, 300.5), ({"max_lifetime_seconds": 60}, 61), ({"default_lifetime_seconds": 9}, 301)],
)
async def test_a_longer_lifetime_is_refused_and_the_setting_to_raise_named(
    project_id: UUID, host: ActingHost, limits: dict[str, int], asked: float
) -> None:
    await _set(project_id, **limits)
    with pytest.raises(LifetimeTooLong) as refused:
        await controller_start_interactive_command(project_id, "cat", lifetime_seconds=asked)
    name = (await in_database(Project.objects.get, id=project_id)).name
    assert f"Maximum lifetime (max_lifetime_seconds) of project {name}" in refused.value.hint
    assert (refused.value.code, refused.value.retryable) == ("LIFETIME_TOO_LONG", False)
    assert not host.commands


async def test_the_refusal_of_one_more_session_names_the_setting_to_raise(
    project_id: UUID, host: ActingHost
) -> None:
    await controller_start_interactive_command(project_id, "cat")
    with pytest.raises(SessionLimitReached) as refused:
        await controller_start_interactive_command(project_id, "cat")
    assert "Max interactive sessions (max_interactive_sessions)" in refused.value.hint
    await _set(project_id, max_interactive_sessions=0)
    with pytest.raises(SessionLimitReached) as refused:
        await controller_start_interactive_command(project_id, "cat")
    assert "Max interactive sessions (max_interactive_sessions)" in refused.value.hint


async def test_the_interactive_lifetime_maximum_spares_background_sessions(
    project_id: UUID, host: ActingHost
) -> None:
    await _set(project_id, max_lifetime_seconds=60)
    started = await background_start(project_id, "sleep 900", lifetime_seconds=900)
    assert (
        await in_database(CommandSession.objects.get, id=started.session_id)
    ).lifetime_seconds == 900


def test_a_project_from_before_goes_on_allowing_seven_days() -> None:
    old = Project.objects.create(name="old")
    importlib.import_module("projects.migrations.0013_lifetimes").keep_the_former_maximum(
        apps, None
    )
    new = Project.objects.create(name="new")
    old.refresh_from_db()
    assert (old.max_lifetime_seconds, old.default_lifetime_seconds, new.max_lifetime_seconds) == (
        604_800,
        None,
        None,
    )


@pytest.mark.parametrize(
    ("limits", "field"),
    [
        ({"default_lifetime_seconds": 301}, "default_lifetime_seconds"),
        ({"default_lifetime_seconds": 61, "max_lifetime_seconds": 60}, "default_lifetime_seconds"),
        ({"max_lifetime_seconds": 0}, "max_lifetime_seconds"),
        ({"max_lifetime_seconds": 604_801}, "max_lifetime_seconds"),
    ],
)
def test_a_project_cannot_promise_what_it_does_not_allow(
    limits: dict[str, int], field: str
) -> None:
    with pytest.raises(ValidationError) as refused:
        Project(name="lab", **limits).full_clean()
    assert set(refused.value.message_dict) == {field}
