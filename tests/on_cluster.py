"""A plugin of pytest: every stack is a cluster, and the test process's own database and channel layer are on PostgreSQL and Redis too.

``python -m pytest -p tests.on_cluster [arguments]``. Only what stands on the server's storage or its channel layer is worth the time;
``bin/test`` says which tests these are.
"""

import os
from collections.abc import Generator

import pytest

from tests.support.cluster import Backends, Cluster
from tests.support.stack import deploy


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
