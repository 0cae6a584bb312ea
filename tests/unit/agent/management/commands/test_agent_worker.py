"""The process of a worker says by its exit code that it failed."""

import asyncio
import os
import signal

import pytest
from django.core.management import call_command

from agent import worker


async def _fail() -> None:
    raise RuntimeError("no runs today")


async def _told_to_end() -> None:
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()


def test_a_worker_that_fails_does_not_end_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "work", _fail)
    with pytest.raises(RuntimeError, match="no runs today"):
        call_command("agent_worker")


def test_a_worker_that_is_told_to_end_ends_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "work", _told_to_end)
    call_command("agent_worker")
