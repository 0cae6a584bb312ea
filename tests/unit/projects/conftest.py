"""A project with a host that acts, in this process.

Its programs print nothing until a test has them say something.
"""

import math
import time
from collections.abc import AsyncIterator
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from projects.models import Controller
from projects.storage import clock
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller


@pytest.fixture(autouse=True)
def only_declared_codes(declared_codes_only: None) -> None:
    """Tools answer with error codes that they declare."""


@pytest.fixture(autouse=True)
def steady_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The process of the tests is young, and its clock is believed all the same, whatever another
    test did to it.
    """
    monkeypatch.setattr(clock.STEADINESS, "_since", -clock.MOST_STEADY_SECONDS)
    monkeypatch.setattr(clock.STEADINESS, "_ahead", clock.now_seconds() - time.monotonic())
    monkeypatch.setattr(clock.STEADINESS, "_step", 0.0)
    monkeypatch.setattr(clock.STEADINESS, "_stepped_at", -math.inf)


@pytest.fixture
def days_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """The own clock of this process is days ahead of the database's, which it has measured."""
    real, ahead = timezone.now, timedelta(days=9)
    monkeypatch.setattr(clock._offset, "seconds", clock._offset.seconds - ahead.total_seconds())
    monkeypatch.setattr(clock.STEADINESS, "_ahead", clock.now_seconds() - time.monotonic())
    monkeypatch.setattr(timezone, "now", lambda: real() + ahead)


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
