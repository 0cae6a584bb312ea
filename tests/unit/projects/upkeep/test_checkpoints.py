"""SQLite's log is moved beside the calls."""

import pytest
from django.db import connection

from projects.models import Project
from projects.storage.access import at_length, in_database
from projects.upkeep.checkpoints import checkpoint

pytestmark = pytest.mark.django_db(transaction=True)


async def test_a_checkpoint_moves_everything_that_was_committed() -> None:
    await in_database(Project.objects.create, name="a")
    if await in_database(lambda: connection.vendor) != "sqlite":
        pytest.skip("only SQLite has a log to be moved")
    assert await at_length(checkpoint) == 0
    assert await in_database(Project.objects.filter(name="a").count) == 1


async def test_a_commit_goes_on_beside_a_checkpoint() -> None:
    await in_database(Project.objects.create, name="b")
    await at_length(checkpoint)
    await in_database(Project.objects.create, name="c")
    assert await in_database(Project.objects.count) == 2
