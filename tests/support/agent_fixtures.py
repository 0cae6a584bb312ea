"""A stack whose server carries out runs of models that the tests write down."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.agent_commands import RunRows, Submitter, submitter
from tests.support.model_server import ModelServer, model_server
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

RUN_SECONDS = 150.0
Carried = Callable[..., RunRows]


@pytest.fixture(scope="session")
def models() -> Iterator[ModelServer]:
    """One server of models; each test has names of its own."""
    with model_server() as server:
        yield server


@pytest.fixture(scope="session")
def agents(models: ModelServer) -> Iterator[Stack]:
    """A stack whose server knows these models; it is only used, never harmed."""
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_MODEL_ATTEMPTS": "3",
        "HOLDLINE_AGENT_MODEL_BACKOFF_SECONDS": "0.05",
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
        "HOLDLINE_AGENT_CONCURRENCY": "8",
    }
    with running_stack(server_environment=environment) as stack:
        yield stack


@pytest.fixture(scope="session")
def runs(agents: Stack) -> Iterator[Submitter]:
    """Submits runs to it."""
    with submitter(agents) as process:
        yield process


@pytest.fixture(scope="session")
def carried_out(runs: Submitter) -> Carried:
    """Submits a run and waits for its end."""

    def ended(model: str, **limits: Any) -> RunRows:
        run = runs.submit(model, **limits)
        wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
        return run

    return ended
