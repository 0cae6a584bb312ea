"""Leases: the server counts a host as online until its lease expires.

A lease is renewed while its connection is heard of. A renewal is also where a connection finds out
that a newer connection replaced it (fenced), or that its credential was revoked.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection

from projects.conf import conf
from projects.link.inbound.refusals import Fenced, Revoked
from projects.models import Controller
from projects.storage import clock
from projects.storage.columns import as_parameter, time_as_parameter
from projects.storage.rows import fetch_row, fetch_rows

RENEWED_AT_ONCE: Final = 64

# Runs every few seconds for every controller. A row that another transaction has locked is left
# out: it must not hold up the others.
_RENEW: Final = """
UPDATE projects_controller SET lease_expires_at = %s
WHERE id IN (
        SELECT id FROM projects_controller
        WHERE (id, epoch) IN (VALUES {pairs}) AND revoked_at IS NULL{lock})
    AND EXISTS (
        SELECT 1 FROM projects_controllercredential k
        WHERE k.id = projects_controller.connected_credential_id
            AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s))
RETURNING id, epoch
"""
_RENEW_ONE: Final = """
UPDATE projects_controller SET lease_expires_at = %s
WHERE id = %s AND epoch = %s AND revoked_at IS NULL AND EXISTS (
    SELECT 1 FROM projects_controllercredential
    WHERE id = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %s)
)
"""
_STANDING: Final = """
SELECT c.epoch, c.revoked_at IS NOT NULL OR k.revoked_at IS NOT NULL, k.expires_at
FROM projects_controller c
JOIN projects_controllercredential k ON k.controller_id = c.id AND k.id = %s
WHERE c.id = %s
"""


class Lease(NamedTuple):
    """The lease that a connection of ``controller_id`` holds, under its ``epoch``."""

    controller_id: UUID
    epoch: int
    credential_id: UUID


class _Renewed(NamedTuple):
    controller_id: UUID
    epoch: int


class _Standing(NamedTuple):
    epoch: int
    is_revoked: bool
    expires_at: datetime | None


def lease_end() -> datetime:
    """The moment at which a lease that is renewed now expires."""
    return clock.now() + timedelta(seconds=conf.lease_seconds)


def renew(leases: Sequence[Lease]) -> set[Lease]:
    """Renew at most RENEWED_AT_ONCE leases in one statement, and return those that were renewed.

    ``renew_one`` then finds out why each of the others was not.
    """
    # Only lengths that are powers of two, so that the database has to prepare few statements.
    length = 1 << (len(leases) - 1).bit_length()
    padded = [*leases, *[leases[-1]] * (length - len(leases))]
    lock = (
        " FOR NO KEY UPDATE SKIP LOCKED"
        if connection.features.has_select_for_update_skip_locked
        else ""
    )
    statement = _RENEW.format(pairs=", ".join(["(%s, %s)"] * length), lock=lock)
    pairs = [
        value for lease in padded for value in (as_parameter(lease.controller_id), lease.epoch)
    ]
    parameters = [time_as_parameter(lease_end()), *pairs, time_as_parameter(clock.now())]
    renewed = set(fetch_rows(_Renewed, statement, parameters))
    return {lease for lease in leases if (lease.controller_id, lease.epoch) in renewed}


def renew_one(lease: Lease) -> None:
    """Renew a lease. Raises Revoked, or Fenced if a newer connection took over."""
    keys = [as_parameter(lease.controller_id), lease.epoch, as_parameter(lease.credential_id)]
    with connection.cursor() as cursor:
        now = time_as_parameter(clock.now())
        cursor.execute(_RENEW_ONE, [time_as_parameter(lease_end()), *keys, now])
        if cursor.rowcount == 1:
            return
    check_standing(lease)
    raise Fenced


def check_standing(lease: Lease) -> None:
    """Raises Revoked or Fenced as ``renew_one`` does, and writes nothing."""
    keys = [as_parameter(lease.credential_id), as_parameter(lease.controller_id)]
    standing = fetch_row(_Standing, _STANDING, keys)
    if standing is None or standing.is_revoked or is_past(standing.expires_at):
        raise Revoked
    if standing.epoch != lease.epoch:
        raise Fenced


def is_past(moment: datetime | None) -> bool:
    """True if the moment is set and is over."""
    return moment is not None and moment <= clock.now()


def release(controller_id: UUID, epoch: int) -> None:
    """End the lease of a daemon that said it goes, so that its host is offline at once."""
    Controller.objects.filter(id=controller_id, epoch=epoch).update(lease_expires_at=clock.now())
