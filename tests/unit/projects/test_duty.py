"""A duty is one process's at a time; on SQLite, which has one, it is always ours."""

import pytest
from django.db import connection

from projects import duty
from projects.models import Duty

pytestmark = pytest.mark.django_db


def test_it_is_held_by_one_until_its_moment_has_come() -> None:
    others_may = connection.vendor == "sqlite"
    assert duty.take("work", 60, "first")
    assert duty.take("work", 60, "first"), "put off"
    assert duty.take("work", 60, "second") == others_may
    assert duty.take("other work", 60, "second")
    Duty.objects.filter(name="work").update(until="2001-01-01T00:00:00Z")
    assert duty.take("work", 60, "second")
    assert duty.take("work", 60, "first") == others_may
