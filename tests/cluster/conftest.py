"""Clusters with backends that tests may stop. Each test leaves them running."""

from collections.abc import Iterator

import pytest

from tests.support.databases.cluster import Backends, Cluster, running_backends, running_cluster


@pytest.fixture(scope="session")
def backends() -> Iterator[Backends]:
    """PostgreSQL and Redis for the tests of this directory, and for nobody else."""
    with running_backends("max_connections=60") as started:
        yield started


@pytest.fixture(scope="module")
def cluster(backends: Backends) -> Iterator[Cluster]:
    """A cluster for one file. A test starts again whatever it stops."""
    with running_cluster(backends=backends) as started:
        yield started
