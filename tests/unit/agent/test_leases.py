"""Leases are read by the time that all processes share, whatever the clock of this one says."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agent import services
from agent.models import AgentRun
from agent.runs import records
from projects.models import Controller
from projects.sessions.selectors import is_online
from projects.storage import clock
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db
LEASE_SECONDS = 30.0


@pytest.fixture
def controller() -> Controller:
    return make_controller(lease_expires_at=timezone.now() + timedelta(seconds=LEASE_SECONDS))


def _run_an_hour_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the process of a machine whose clock is wrong, and which has measured by how much."""
    right = timezone.now
    monkeypatch.setattr(timezone, "now", lambda: right() + timedelta(hours=1))
    monkeypatch.setattr(clock._offset, "seconds", -3600.0)


def _jump(monkeypatch: pytest.MonkeyPatch, hours: int) -> None:
    """The machine's clock is set anew while this process runs."""
    monkeypatch.setattr(clock, "STEADINESS", clock.Steadiness())
    right, now = clock.time.time, timezone.now
    monkeypatch.setattr(clock.time, "time", lambda: right() + hours * 3600)
    monkeypatch.setattr(timezone, "now", lambda: now() + timedelta(hours=hours))


def _run(controller: Controller) -> AgentRun:
    limits = {
        "max_steps": 1,
        "max_tokens": 1,
        "max_cost_cents": 1,
        "max_run_seconds": 1,
        "output_bytes": 1,
    }
    return AgentRun.objects.create(
        project=controller.project, task="tidy up", model="scripted:demo", **limits
    )


def test_a_worker_whose_clock_is_ahead_takes_no_run_from_another(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = {
        "max_steps": 1,
        "max_tokens": 1,
        "max_cost_cents": 1,
        "max_run_seconds": 1,
        "output_bytes": 1,
    }
    run = AgentRun.objects.create(
        project=controller.project, task="tidy up", model="scripted:demo", **limits
    )
    taken = records.run_claim(LEASE_SECONDS)
    assert taken is not None
    _run_an_hour_ahead(monkeypatch)
    assert records.run_claim(LEASE_SECONDS) is None
    run.refresh_from_db()
    assert (run.lease, run.interruptions) == (taken[1], 0)


def test_a_host_is_not_away_for_a_clock_that_is_ahead(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run_an_hour_ahead(monkeypatch)
    services._require_online([controller])


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_jumps_takes_no_run_and_no_host_away(
    controller: Controller, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    """Nobody measures that: it is as on SQLite, where every process has the machine's clock."""
    _run(controller)
    assert records.run_claim(LEASE_SECONDS) is not None
    _jump(monkeypatch, hours)
    assert records.run_claim(LEASE_SECONDS) is None
    services._require_online([controller])
    assert is_online(controller.lease_expires_at)


def test_a_run_whose_worker_died_before_the_clock_was_put_back_goes_on(
    controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    _run(controller)
    assert records.run_claim(LEASE_SECONDS) is not None
    _jump(monkeypatch, -1)
    assert records.run_claim(LEASE_SECONDS) is None, "its worker may be about to renew the lease"
    monkeypatch.setattr(clock.STEADINESS, "_since", clock.time.monotonic() - LEASE_SECONDS)
    assert records.run_claim(LEASE_SECONDS) is not None
