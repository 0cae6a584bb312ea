"""Agent runs on PostgreSQL with several workers.

Each run is carried out once, by any free worker. If that worker is killed, another one continues.
"""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import pytest

from tests.support.agents.commands import Submitter, submitter
from tests.support.agents.model_server import ModelServer, Says, Seen, call, done, in_turn
from tests.support.databases.cluster import Backends, Cluster, running_cluster
from tests.support.processes import status_field
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

pytestmark = pytest.mark.timeout(900)
RUN_SECONDS = 150.0
RUNS = 6


@pytest.fixture(scope="module")
def cluster(backends: Backends, models: ModelServer) -> Iterator[Cluster]:
    """A cluster whose servers carry out no runs until a test says otherwise.

    A lost lease is noticed soon.
    """
    quick = {
        "HOLDLINE_AGENT_WORKER": "false",
        "HOLDLINE_AGENT_LEASE_SECONDS": "3",
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
    }
    environment = {**models.environment, **quick, "HOLDLINE_AGENT_APPROVALS": "auto"}
    with running_cluster(backends=backends, server_environment=environment) as started:
        yield started


@pytest.fixture(scope="module")
def runs(cluster: Cluster) -> Iterator[Submitter]:
    """A submitter of runs to the cluster."""
    with submitter(cluster) as process:
        yield process


def _hears_sigterm(process: "subprocess.Popen[bytes]") -> bool:
    caught = int(status_field(process.pid, "SigCgt") or "0", 16)
    return process.poll() is not None or bool(caught >> (signal.SIGTERM - 1) & 1)


@contextmanager
def agent_worker(cluster: Cluster) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that only carries out runs."""
    worker = subprocess.Popen(
        [sys.executable, "manage.py", "agent_worker"],
        cwd=PROJECT_ROOT,
        env=cluster.server_environment(),
    )
    try:
        # A worker that is told to end before it listens to that does not end in order.
        wait_until(lambda: _hears_sigterm(worker), RUN_SECONDS, "the worker to be at work")
        yield worker
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(RUN_SECONDS)


def test_several_workers_carry_out_each_run_once(cluster: Cluster, runs: Submitter) -> None:
    with agent_worker(cluster) as worker, agent_worker(cluster) as other:
        submitted = [runs.submit("scripted:demo", "show me") for _ in range(RUNS)]
        for run in submitted:
            wait_until(lambda run=run: run.is_over, RUN_SECONDS, "the run to end")
    assert worker.returncode == other.returncode == 0
    assert [run.end for run in submitted] == [("finished", "done")] * RUNS
    for run in submitted:
        assert [step["number"] for step in run.steps] == [1, 2, 3, 4, 5, 6]
        session = run.results[1]["session_id"]
        assert cluster.database.transcript(session).count(b"Welcome, Ada") == 1


def test_another_worker_continues_the_run_of_a_killed_worker(
    cluster: Cluster, runs: Submitter, models: ModelServer, tmp_path: Path
) -> None:
    """An agent worker is killed, then the server that continues its run; a third finishes it."""
    acted, gates = tmp_path / "acted", [tmp_path / "first", tmp_path / "second"]
    asks = (
        f"""bash -c 'read -p "Name: " name; echo "$name" >> {acted}; """
        f"""read -p "More: " more; echo "$more" >> {acted}'"""
    )

    def waits_at(gate: Path) -> Says:
        return call(
            "execute_command",
            command=f"echo {gate.name} >> {acted}; until [ -e {gate} ]; do sleep 0.1; done",
        )

    def types(text: str) -> Callable[[Seen], Says]:
        return lambda seen: call(
            "send_command_input",
            session_id=seen.value("session_id"),
            input_text=text,
            wait_seconds=20,
        )

    models.scripts["moves"] = in_turn(
        waits_at(gates[0]),
        call("start_interactive_command", command=asks, wait_seconds=20),
        types("Ada\n"),
        types("that is all\n"),
        waits_at(gates[1]),
        done(),
    )

    def is_at(gate: Path) -> bool:
        return acted.exists() and gate.name in acted.read_text()

    with agent_worker(cluster) as worker:
        run = runs.submit("openai:moves")
        wait_until(
            lambda: is_at(gates[0]), RUN_SECONDS, "the worker to be in the middle of a command"
        )
        worker.kill()
    gates[0].touch()
    cluster.kill_worker(0)
    cluster.start_worker(0, HOLDLINE_AGENT_WORKER="true")
    # A server starts to carry out runs with its first connection, here that of a probe.
    with urlopen(
        f"http://127.0.0.1:{cluster.worker_ports[0]}/healthz", timeout=RUN_SECONDS
    ) as answer:
        assert answer.status == 200
    wait_until(lambda: is_at(gates[1]), RUN_SECONDS, "the server to have taken it up")
    cluster.kill_worker(0)
    gates[1].touch()
    with agent_worker(cluster):
        wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    cluster.start_worker(0)
    assert run.end == ("finished", "done")
    assert acted.read_text().split("\n")[:-1] == ["first", "Ada", "that is all", "second"]
    assert [(bool(step["is_complete"]), len(step["results"])) for step in run.steps] == [
        (True, 1)
    ] * 6
    assert not any(result["is_error"] for step in run.steps for result in step["results"])
