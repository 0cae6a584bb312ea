"""A pytest plugin that makes every stack a cluster.

The database and the channel layer of the test process are on PostgreSQL and Redis too. ``bin/test
--cluster [arguments]`` uses it. Without arguments it runs the tests that depend on the server's
storage or its channel layer; with ``--part NAME`` some of them.
"""

import os
from collections.abc import Generator
from typing import Final

import pytest

from tests.support.databases.cluster import Backends, Cluster
from tests.support.stack import deploy

_PARTS: Final = {
    "faults": ("tests/faults",),
    "integration": ("tests/integration",),
    # Modules with SQL of their own or with locks.
    "units": (
        "tests/unit/agent/test_approvals.py",
        "tests/unit/projects/link/inbound",
        "tests/unit/projects/attention/test_events.py",
        "tests/unit/projects/attention/test_messages.py",
        "tests/unit/projects/attention/test_noticing.py",
        "tests/unit/projects/attention/test_telling.py",
        "tests/unit/projects/audit/test_log.py",
        "tests/unit/projects/audit/test_marks.py",
        "tests/unit/projects/storage/test_access.py",
        "tests/unit/projects/storage/test_rows.py",
        "tests/unit/projects/sessions/test_outbox.py",
        "tests/unit/projects/wakeups/test_doorbells.py",
        "tests/unit/projects/process/test_leader_lease.py",
        "tests/unit/projects/output/test_log.py",
        "tests/unit/projects/output/recording",
        "tests/unit/projects/reads/test_pages.py",
        "tests/unit/projects/reads/test_recordings.py",
        "tests/unit/projects/accounts/test_rate_limits.py",
        "tests/unit/projects/upkeep/test_retention.py",
        "tests/unit/projects/reads/test_search.py",
        "tests/unit/projects/sessions/test_interactive.py",
        "tests/unit/projects/sessions/test_interactive_refusals.py",
        "tests/unit/projects/sessions/transactions/test_erasure.py",
        "tests/unit/projects/upkeep/test_put_back.py",
        "tests/unit/projects/upkeep/test_sweeper.py",
        "tests/unit/projects/test_query_plans.py",
    ),
}
"""The tests that are run by default, in parts that can go on side by side."""
_ELSEWHERE: Final = {
    "tests/integration/agent/test_budgets.py": (
        "limits of runs over both wires; what kills of servers do to runs is in faults/kills"
    ),
    "tests/integration/agent/test_endpoint.py": "wires of models",
    "tests/integration/agent/test_evaluation.py": "tasks for models",
    "tests/integration/agent/test_models.py": (
        "wires of models, and what is judged of their answers"
    ),
    "tests/integration/agent/test_requirement.py": "whole runs over both wires",
    "tests/integration/daemon/test_connection.py": (
        "the daemon's own connection, against a scripted server"
    ),
    "tests/integration/daemon/test_daemon.py": "a daemon against a scripted server",
    "tests/integration/daemon/test_older_holders.py": "a daemon against a scripted server",
    "tests/integration/daemon/test_other_users.py": "the host's own side",
    "tests/integration/daemon/test_pipes.py": "a daemon against a scripted server",
    "tests/integration/daemon/test_platform.py": "the host's own side",
    "tests/integration/daemon/test_reconnection.py": "a daemon against a scripted server",
    "tests/integration/holder": "holders, without any server",
    "tests/integration/installs/test_new_host.py": (
        "the host's own side; what the server stores of it is in daemon/test_enrolment.py"
    ),
    "tests/integration/installs/test_one_line.py": "the host's own side",
    "tests/integration/installs/test_packaging.py": "installs distributions",
    "tests/integration/installs/test_quickstart.py": "brings its own embedded server",
    "tests/integration/installs/test_quickstart_again.py": "brings its own embedded server",
    "tests/integration/installs/test_images.py": "brings its own embedded servers",
    "tests/integration/installs/test_releases.py": "brings its own servers of both kinds",
    "tests/integration/benchmarks": "brings its own embedded server",
    "tests/integration/running": "the tests' own support",
    "tests/integration/server/test_start.py": "brings its own servers of both kinds",
    "tests/integration/installs/test_ports.py": "the tests' own support",
    "tests/integration/mcp/test_bridge.py": (
        "the face of the protocol; the calls behind it are those of the other tests"
    ),
    "tests/integration/mcp/test_bridge_installed.py": "the face of the protocol",
    "tests/integration/mcp/test_conformance.py": "the face of the protocol",
    "tests/integration/mcp/test_inspector.py": "the face of the protocol",
    "tests/integration/mcp/test_typescript.py": "the face of the protocol",
    "tests/integration/server/test_secret_leaks.py": "brings its own databases of both kinds",
    "tests/integration/daemon/test_tls.py": "the daemon's own side",
    "tests/integration/daemon/test_warnings.py": "the daemon's own side",
    "tests/integration/overdue": "a daemon against a scripted server",
    "tests/integration/spoiled": "a daemon against a scripted server",
    "tests/integration/two_users": "the host's own side",
    "tests/faults/peers/test_fuzz.py": "what is refused before it is stored",
    "tests/faults/peers/test_lying_controllers.py": (
        "what is refused before it is stored; doubled and torn batches are in link/inbound"
    ),
    "tests/faults/peers/test_lying_servers.py": "a daemon against a scripted server",
    "tests/faults/peers/test_request_bounds.py": (
        "what is refused before any storage is asked, on servers of its own"
    ),
    "tests/faults/test_monitors.py": (
        "files of a host; what the server stores of them is tested without faults"
    ),
}
"""The files that are left out by default, each with the subject that makes a cluster needless."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Start the backends before Django reads its settings."""
    backends = Backends().start()
    early_config.add_cleanup(backends.remove)
    backends.postgres.execute("CREATE DATABASE tests")
    os.environ |= {"DATABASE_URL": backends.postgres.url("tests"), "REDIS_URL": backends.redis.url}
    Cluster.shared = backends
    deploy(Cluster)
    return (yield)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--part``, which may be given several times."""
    parser.addoption(
        "--part", action="append", choices=tuple(_PARTS), help="some of the tests of the cluster"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Run the default tests if no paths were given."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        parts = config.getoption("--part") or tuple(_PARTS)
        config.args = [path for part in parts for path in _PARTS[part]]
        config.option.ignore_glob = [
            *(config.option.ignore_glob or []),
            *(str(config.rootpath / path) for path in _ELSEWHERE),
        ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave out the tests that are about SQLite."""
    items[:] = [item for item in items if not item.get_closest_marker("sqlite")]
