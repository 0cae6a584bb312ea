"""Leases: how the server knows which hosts are there. Each is renewed while its connection is heard of, and otherwise runs out.

A renewal is also where a connection finds out that it was fenced or revoked.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection

from projects import clock
from projects.conf import conf
from projects.dispatch import as_parameter, as_time, time_as_parameter
from projects.inbound.refusals import Fenced, Revoked
from projects.models import Controller

RENEWED_AT_ONCE: Final = 64

# Every few seconds for every controller. One that somebody else is at work on is left out: it must not hold up the others.
_RENEW: Final = """
UPDATE projects_controller SET lease_expires_at = %s
WHERE id IN (SELECT id FROM projects_controller WHERE (id, epoch) IN (VALUES {pairs}) AND revoked_at IS NULL{lock})
    AND EXISTS (SELECT 1 FROM projects_controllercredential k WHERE k.id = projects_controller.connected_credential_id
        AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > %s))
RETURNING id, epoch
"""
_RENEW_ONE: Final = """
UPDATE projects_controller SET lease_expires_at = %s WHERE id = %s AND epoch = %s AND revoked_at IS NULL AND EXISTS (
    SELECT 1 FROM projects_controllercredential WHERE id = %s AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > %s)
)
"""
_STANDING: Final = """
SELECT c.epoch, c.revoked_at, k.revoked_at, k.expires_at
FROM projects_controller c JOIN projects_controllercredential k ON k.controller_id = c.id AND k.id = %s WHERE c.id = %s
"""


class Lease(NamedTuple):
    """What a connection of ``controller_id`` holds, under its ``epoch``."""

    controller_id: UUID
    epoch: int
    credential_id: UUID


def lease_end() -> datetime:
    """When a lease that is renewed now runs out."""
    return clock.now() + timedelta(seconds=conf.lease_seconds)


def renew(leases: Sequence[Lease]) -> set[Lease]:
    """Renews those of at most RENEWED_AT_ONCE leases that can be at once; which. Each of the others has to be looked at: ``renew_one``."""
    # Few different lengths, so that the statement stays one of a few that the database has prepared.
    length = 1 << (len(leases) - 1).bit_length()
    padded = [*leases, *[leases[-1]] * (length - len(leases))]
    lock = " FOR NO KEY UPDATE SKIP LOCKED" if connection.features.has_select_for_update_skip_locked else ""
    statement = _RENEW.format(pairs=", ".join(["(%s, %s)"] * length), lock=lock)
    pairs = [value for lease in padded for value in (as_parameter(lease.controller_id), lease.epoch)]
    with connection.cursor() as cursor:
        cursor.execute(statement, [time_as_parameter(lease_end()), *pairs, time_as_parameter(clock.now())])
        renewed = {(UUID(str(row[0])), row[1]) for row in cursor.fetchall()}
    return {lease for lease in leases if (lease.controller_id, lease.epoch) in renewed}


def renew_one(lease: Lease) -> None:
    """Renews the lease. Raises Revoked, or Fenced when a newer connection took over."""
    keys, now = (as_parameter(lease.controller_id), lease.epoch, as_parameter(lease.credential_id)), time_as_parameter(clock.now())
    with connection.cursor() as cursor:
        cursor.execute(_RENEW_ONE, [time_as_parameter(lease_end()), *keys, now])
        is_renewed = cursor.rowcount == 1
    if not is_renewed:
        check_standing(lease)
        raise Fenced


def check_standing(lease: Lease) -> None:
    """Raises as ``renew_one`` does, and writes nothing."""
    with connection.cursor() as cursor:
        cursor.execute(_STANDING, [as_parameter(lease.credential_id), as_parameter(lease.controller_id)])
        row = cursor.fetchone()
    if row is None or row[1] is not None or row[2] is not None or is_past(as_time(row[3])):
        raise Revoked
    if row[0] != lease.epoch:
        raise Fenced


def is_past(moment: datetime | None) -> bool:
    """Whether a time that may be set is over."""
    return moment is not None and moment <= clock.now()


def release(controller_id: UUID, epoch: int) -> None:
    """The daemon said that it goes: it is offline now, not when its lease runs out."""
    Controller.objects.filter(id=controller_id, epoch=epoch).update(lease_expires_at=clock.now())
