"""After a restore, a ``request_id`` that is not known and may be old is refused."""

from collections.abc import Iterator
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from projects.accounts import ages
from projects.errors.uncertain import RequestNotKnown
from projects.models import Restore
from projects.storage import clock

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _asked_anew() -> Iterator[None]:
    ages.last_restore.cache_clear()
    yield
    ages.last_restore.cache_clear()


def _restored(ago: timedelta) -> None:
    now = clock.now()
    Restore.objects.create(
        at=now - ago, backup_made_at=now - ago - timedelta(hours=3), backup_release="1", actor="a"
    )


def test_without_a_restore_every_id_is_known() -> None:
    ages.require_known(uuid4())


def test_an_id_without_a_time_is_refused_and_the_fresh_one_is_not() -> None:
    _restored(timedelta(minutes=1))
    with pytest.raises(RequestNotKnown) as refused:
        ages.require_known(uuid4())
    fresh = UUID(refused.value.hint.split("request_id ")[1].split(";")[0])
    assert fresh.version == 7
    ages.require_known(fresh)


def test_an_id_that_says_a_time_before_the_restore_is_refused() -> None:
    _restored(timedelta(minutes=1))
    with pytest.raises(RequestNotKnown):
        ages.require_known(ages._made_at(clock.now() - timedelta(minutes=2)))


def test_a_day_after_the_restore_nobody_repeats_any_more() -> None:
    _restored(ages.REPEATS_LAST + timedelta(minutes=1))
    ages.require_known(uuid4())


def test_calls_that_were_surely_made_later_are_known() -> None:
    _restored(timedelta(minutes=1))
    with ages.made_since(clock.now()):
        ages.require_known(uuid4())
    with ages.made_since(clock.now() - timedelta(hours=1)), pytest.raises(RequestNotKnown):
        ages.require_known(uuid4())


def test_the_highest_time_that_an_id_can_say_is_no_error() -> None:
    _restored(timedelta(minutes=1))
    ages.require_known(UUID("ffffffff-ffff-7fff-bfff-ffffffffffff"))
