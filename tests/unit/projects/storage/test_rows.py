"""Rows that hand-written statements return, as values with types on every database."""

from collections.abc import Callable
from datetime import datetime
from typing import NamedTuple
from unittest import mock
from uuid import UUID

import pytest
from django.db import DEFAULT_DB_ALIAS, IntegrityError, connections, transaction
from django.utils import timezone

from projects.models import Controller, Project
from projects.storage.access import in_database
from projects.storage.columns import as_parameter
from projects.storage.rows import (
    execute,
    fetch_row,
    fetch_rows,
    row_insert,
    row_soon,
    row_update,
)

pytestmark = pytest.mark.django_db

_STATEMENT = """
SELECT id, name, lease_expires_at, id IS NOT NULL, revoked_at FROM projects_controller WHERE id = %s
"""


class _Found(NamedTuple):
    id: UUID
    name: str
    lease_expires_at: datetime | None
    has_id: bool
    revoked_at: datetime | None


def test_columns_become_fields_of_their_declared_types() -> None:
    host = Controller.objects.create(
        project=Project.objects.create(name="rows"), name="host", lease_expires_at=timezone.now()
    )
    found = fetch_rows(_Found, _STATEMENT, [as_parameter(host.id)])
    assert found == [_Found(host.id, "host", host.lease_expires_at, True, None)]
    assert found[0].has_id is True


def test_no_row_is_none() -> None:
    assert fetch_row(_Found, _STATEMENT, [as_parameter(UUID(int=0))]) is None


class _Name(NamedTuple):
    name: str


_NAME = "SELECT name FROM projects_project WHERE id = %s"


def _names() -> list[str]:
    return list(Project.objects.order_by("name").values_list("name", flat=True))


def _insert(*projects: Project, then: Callable[[], object] = list) -> None:
    """Insert projects, and call ``then``, all in a transaction or a savepoint."""
    with transaction.atomic():
        for project in projects:
            row_insert(project)
        then()


@pytest.mark.django_db(transaction=True)
def test_statements_and_those_of_the_orm_take_effect_in_their_order() -> None:
    made = Project(name="first")
    with transaction.atomic():
        row_insert(made)
        assert _names() == ["first"]
        row_update(Project, made.id, name="second")
        Project.objects.filter(name="second").update(name="third")
        assert fetch_row(_Name, _NAME, [as_parameter(made.id)]) == ("third",)
        row_update(Project, made.id, name="last")
    assert _names() == ["last"]


@pytest.mark.django_db(transaction=True)
def test_a_statement_outside_of_a_transaction_is_executed_at_once() -> None:
    row_insert(Project(name="alone"))
    assert _names() == ["alone"]


@pytest.mark.django_db(transaction=True)
def test_the_error_of_a_statement_is_raised_by_the_commit_at_the_latest() -> None:
    made = Project(name="once")
    with pytest.raises(IntegrityError):
        _insert(Project(name="before"), made, made)
    assert _names() == []
    row_insert(made)
    assert _names() == ["once"]


@pytest.mark.django_db(transaction=True)
def test_what_a_savepoint_undoes_is_undone_whether_it_was_sent_or_not() -> None:
    made = Project(name="a")
    with transaction.atomic():
        row_insert(made)
        with pytest.raises(ZeroDivisionError):
            _insert(Project(name="b"), then=lambda: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            _insert(Project(name="c"), then=lambda: 1 // (len(_names()) - 2))
        with pytest.raises(IntegrityError):
            _insert(made)
        row_insert(Project(name="d"))
    assert _names() == ["a", "d"]


_RENAME = "UPDATE projects_project SET name = %s WHERE id = %s RETURNING name"


def test_rows_of_a_write_can_be_fetched_after_later_savepoints() -> None:
    made = Project.objects.create(name="before")
    key = as_parameter(made.id)
    first = row_soon(_Name, execute(_RENAME, ["first", key]))
    with transaction.atomic():
        second = row_soon(_Name, execute(_RENAME, ["second", key]))
        _insert(Project(name="other"))
    assert fetch_row(_Name, _NAME, [key]) == ("second",)
    assert (first(), second()) == (("first",), ("second",))
    assert row_soon(_Name, execute(_NAME, [as_parameter(UUID(int=0))]))() is None


def _is_replaced() -> bool:
    """True if a statement opens a new connection in place of one that is found to be dead."""
    here = connections[DEFAULT_DB_ALIAS]
    here.ensure_connection()
    dead = here.connection
    here.health_check_enabled, here.health_check_done = True, False
    with mock.patch.object(here, "is_usable", return_value=False):
        fetch_row(_Found, _STATEMENT, [as_parameter(UUID(int=0))])
    return here.connection is not dead


@pytest.mark.django_db(transaction=True)
async def test_a_dead_connection_is_replaced_before_a_statement_uses_it() -> None:
    assert await in_database(_is_replaced)
