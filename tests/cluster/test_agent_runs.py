"""Runs on PostgreSQL with several workers: each is carried out once, by whoever is free, also by a process of its own."""

import signal
import subprocess
import sys

from tests.support.agent_commands import submitter
from tests.support.cluster import Cluster
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

RUN_SECONDS = 150.0
RUNS = 6


def test_several_workers_carry_out_each_run_once(cluster: Cluster) -> None:
    worker = subprocess.Popen([sys.executable, "manage.py", "agent_worker"], cwd=PROJECT_ROOT, env=cluster.server_environment())
    try:
        with submitter(cluster) as process:
            runs = [process.submit("scripted:demo", "show me") for _ in range(RUNS)]
        for run in runs:
            wait_until(lambda run=run: run.is_over, RUN_SECONDS, "the run to end")
    finally:
        worker.send_signal(signal.SIGTERM)
        worker.wait(RUN_SECONDS)
    assert worker.returncode == 0
    assert [run.end for run in runs] == [("finished", "done")] * RUNS
    for run in runs:
        assert [step["number"] for step in run.steps] == [1, 2, 3, 4, 5, 6]
        session = run.results[1]["session_id"]
        assert cluster.database.transcript(session).count(b"Welcome, Ada") == 1
