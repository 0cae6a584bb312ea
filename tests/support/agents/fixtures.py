"""A stack whose server carries out agent runs, with models whose answers the tests write."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.agents.commands import RunRows, Submitter, submitter
from tests.support.agents.model_server import ModelServer, model_server
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

RUN_SECONDS = 150.0
Carried = Callable[..., RunRows]


@pytest.fixture(scope="session")
def models() -> Iterator[ModelServer]:
    """One server of models for all tests; each test names its own models."""
    with model_server() as server:
        yield server


@pytest.fixture(scope="session")
def agents(models: ModelServer) -> Iterator[Stack]:
    """A stack whose server knows these models. Tests use it and never harm it."""
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_MODEL_ATTEMPTS": "3",
        "HOLDLINE_AGENT_MODEL_BACKOFF_SECONDS": "0.05",
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
        "HOLDLINE_AGENT_CONCURRENCY": "8",
        # A test of approvals sets another policy for its run.
        "HOLDLINE_AGENT_APPROVALS": "auto",
    }
    with running_stack(server_environment=environment) as stack:
        yield stack


@pytest.fixture(scope="session")
def runs(agents: Stack) -> Iterator[Submitter]:
    """A submitter of runs to the stack ``agents``."""
    with submitter(agents) as process:
        yield process


@pytest.fixture(scope="session")
def carried_out(runs: Submitter) -> Carried:
    """A function that submits a run, waits for its end and returns its rows."""

    def ended(model: str, **limits: Any) -> RunRows:
        run = runs.submit(model, **limits)
        wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
        return run

    return ended
