"""Rows that hand-written statements return, as values with types on every database."""

from datetime import datetime
from typing import NamedTuple
from unittest import mock
from uuid import UUID

import pytest
from django.db import DEFAULT_DB_ALIAS, connections
from django.utils import timezone

from projects.models import Controller, Project
from projects.storage.access import in_database
from projects.storage.columns import as_parameter
from projects.storage.rows import fetch_row, fetch_rows

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
