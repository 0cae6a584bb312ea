"""A plugin of pytest: every stack is a cluster, and the test process's own database and channel layer are on PostgreSQL and Redis too.

``bin/test --cluster [arguments]``. Without arguments it runs what stands on the server's storage or its channel layer.
"""

import os
from collections.abc import Generator
from typing import Final

import pytest

from tests.support.cluster import Backends, Cluster
from tests.support.stack import deploy

_TESTS: Final = (
    "tests/integration",
    "tests/faults",
    # What is written out in SQL, or rests on locks.
    "tests/unit/projects/inbound",
    "tests/unit/projects/test_audit_log.py",
    "tests/unit/projects/test_database.py",
    "tests/unit/projects/test_dispatch.py",
    "tests/unit/projects/test_duty.py",
    "tests/unit/projects/test_output_log.py",
    "tests/unit/projects/test_retention.py",
    "tests/unit/projects/test_search.py",
    "tests/unit/projects/test_services.py",
    "tests/unit/projects/test_sweeper.py",
)
_ELSEWHERE: Final = {
    "tests/integration/test_agent_endpoint.py": "wires of models",
    "tests/integration/test_agent_evaluation.py": "tasks for models",
    "tests/integration/test_agent_models.py": "wires of models, and what is judged of their answers",
    "tests/integration/test_connection.py": "the daemon's own connection, against a scripted server",
    "tests/integration/test_daemon.py": "a daemon against a scripted server",
    "tests/integration/test_daemon_pipes.py": "a daemon against a scripted server",
    "tests/integration/test_holder*.py": "holders, without any server",
    "tests/integration/test_packaging.py": "installs distributions",
    "tests/integration/test_quickstart.py": "brings its own embedded server",
    "tests/integration/test_mcp_bridge.py": "the face of the protocol; the calls behind it are those of the other tests",
    "tests/integration/test_mcp_conformance.py": "the face of the protocol",
    "tests/integration/test_mcp_inspector.py": "the face of the protocol",
    "tests/integration/test_mcp_typescript.py": "the face of the protocol",
    "tests/integration/test_secret_leaks.py": "brings its own databases of both kinds",
    "tests/integration/test_tls.py": "the daemon's own side",
    "tests/faults/test_monitors.py": "files of a host; what the server stores of them is tested without faults",
}
"""What is left out by default, and what it is about instead."""


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Generator[None]:
    """Before Django's settings are read."""
    backends = Backends().start()
    early_config.add_cleanup(backends.remove)
    backends.postgres.execute("CREATE DATABASE tests")
    os.environ |= {"DATABASE_URL": backends.postgres.url("tests"), "REDIS_URL": backends.redis.url}
    Cluster.shared = backends
    deploy(Cluster)
    return (yield)


def pytest_configure(config: pytest.Config) -> None:
    """No paths were given: ours."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = list(_TESTS)
        config.option.ignore_glob = [*(config.option.ignore_glob or []), *(str(config.rootpath / path) for path in _ELSEWHERE)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything but what is about SQLite."""
    items[:] = [item for item in items if not item.get_closest_marker("sqlite")]
