"""A project with a host that acts, in this process. Its programs print nothing until a test has them say something."""

from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from projects.models import Controller
from tests.support.acting_host import ActingHost
from tests.support.rows import make_controller


@pytest.fixture
def controller() -> Controller:
    """An enrolled host that is online."""
    return make_controller(epoch=1, lease_expires_at=timezone.now() + timedelta(minutes=5))


@pytest.fixture
def project_id(controller: Controller) -> UUID:
    """The host's project."""
    return controller.project_id


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    """The host itself, taking commands while the test runs."""
    async with ActingHost(controller, on_start=lambda _: None, on_input=lambda _: None) as acting:
        yield acting
