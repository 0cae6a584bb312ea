"""A lease is held by one process at a time; on SQLite, by the only one there is."""

import pytest
from django.db import connection

from projects.models import Duty
from projects.process import leader_lease as duty

pytestmark = pytest.mark.django_db


def test_a_lease_is_held_by_one_process_until_it_expires() -> None:
    others_may = connection.vendor == "sqlite"
    assert duty.take("work", 60, "first")
    assert duty.take("work", 60, "first"), "put off"
    assert duty.take("work", 60, "second") == others_may
    assert duty.take("other work", 60, "second")
    Duty.objects.filter(name="work").update(until="2001-01-01T00:00:00Z")
    assert duty.take("work", 60, "second")
    assert duty.take("work", 60, "first") == others_may


def test_a_lease_from_before_the_clock_was_put_back_keeps_nobody_away() -> None:
    assert duty.take("work", 60, "first")
    Duty.objects.filter(name="work").update(until="2101-01-01T00:00:00Z")
    assert duty.take("work", 60, "second")
