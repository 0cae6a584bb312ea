"""A project with a host that acts, and a token of it."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from django.utils import timezone

from projects.accounts.credentials import api_token_create
from projects.models import Controller, Project
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller


@pytest.fixture(autouse=True)
def only_declared_codes(declared_codes_only: None) -> None:
    """Tools answer with error codes that they declare."""


@pytest.fixture
async def controller() -> Controller:
    return await in_database(
        make_controller, epoch=1, lease_expires_at=timezone.now() + timedelta(minutes=5)
    )


@pytest.fixture
async def bearer(controller: Controller) -> dict[str, str]:
    project = await in_database(Project.objects.get, id=controller.project_id)
    _, token = await in_database(lambda: api_token_create(project=project, name="tests"))
    return {"authorization": f"Bearer {token}"}


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"Name: ") as acting:
        yield acting
