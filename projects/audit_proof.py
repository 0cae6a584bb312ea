"""That the audit log is whole: signed heads, verification, export as JSON lines, and expiry that leaves the rest verifiable.

A chain alone could be computed anew by whoever can write to the database. So the server signs the head of each chain from time to time with
a key that is not in the database, and says it in its log; a chain that does not contain what was signed was changed.
"""

import hmac
import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

from django.db import transaction
from django.utils import timezone

from projects.audit_log import GENESIS, SERVER, Entry, audit, hash_of
from projects.conf import conf
from projects.models import AuditEvent, AuditMark, Project

logger = logging.getLogger(__name__)

EXPIRED_AT_ONCE: Final = 500
_PURPOSE: Final = b"holdline audit mark"
_ROWS_AT_ONCE: Final = 1000
_Kind = AuditMark.Kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one project's chain. ``problems`` is empty if it is whole; ``expired`` rows were removed in good order."""

    project_id: UUID
    rows: int
    expired: int
    signed: int
    problems: tuple[str, ...]


# ---- marks -------------------------------------------------------------------------------------------------------------


def heads_sign(every: timedelta) -> int:
    """Signs the head of each chain that has grown and was not signed for ``every``; how many were. For the sweeper."""
    return sum(_sign_head(project_id, every) for project_id in [SERVER, *Project.objects.values_list("id", flat=True)])


@transaction.atomic
def _sign_head(project_id: UUID, every: timedelta) -> bool:
    head = AuditEvent.objects.filter(project_id=project_id).order_by("-seq").values_list("seq", "hash").first()
    last = AuditMark.objects.filter(project_id=project_id, kind=_Kind.HEAD).order_by("-seq").first()
    if head is None or (last is not None and (last.seq >= head[0] or last.created_at > timezone.now() - every)):
        return False
    _mark(project_id, _Kind.HEAD, *head)
    logger.info("audit log of project %s signed at row %d: %s", project_id, *head)
    return True


def _mark(project_id: UUID, kind: AuditMark.Kind, seq: int, digest: str) -> None:
    signature = _signature(conf.encryption_keys[0], project_id, kind, seq, digest)
    values = {"hash": digest, "signature": signature}
    # Two processes may come to the same head: one of them is enough.
    AuditMark.objects.get_or_create(project_id=project_id, kind=kind, seq=seq, defaults=values)


def _signature(key: str, project_id: UUID, kind: str, seq: int, digest: str) -> str:
    secret = hmac.digest(key.encode(), _PURPOSE, sha256)
    return hmac.new(secret, f"{project_id} {kind} {seq} {digest}".encode(), sha256).hexdigest()


def _is_signed(mark: AuditMark) -> bool:
    made = (_signature(key, mark.project_id, mark.kind, mark.seq, mark.hash) for key in conf.encryption_keys)
    return any(hmac.compare_digest(signature, mark.signature) for signature in made)


# ---- expiry ------------------------------------------------------------------------------------------------------------


@transaction.atomic
def audit_expire(project_id: UUID, before: datetime, *, actor: str) -> int:
    """Removes the oldest rows of a project's chain, from before ``before``; how many. Call it until it says 0.

    At most EXPIRED_AT_ONCE, only from the chain's beginning, and never its newest row. What it removes it signs for, and the rest verifies.
    """
    rows = AuditEvent.objects.filter(project_id=project_id)
    # One more than may go: whatever is last of these stays, be it the newest of all. The cost is that of a batch, however much is over.
    oldest = list(rows.order_by("seq").values_list("seq", "hash", "created_at")[: EXPIRED_AT_ONCE + 1])[:-1]
    gone = list(takewhile(lambda row: row[2] < before, oldest))
    if not gone:
        return 0
    last_seq, digest, _ = gone[-1]
    _mark(project_id, _Kind.EXPIRY, last_seq, digest)
    rows.filter(seq__lte=last_seq).delete()
    # Last: it takes the lock that writers of the chain wait for.
    audit(actor, "audit.expire", (project_id, None, None), {"rows": len(gone), "to_seq": last_seq})
    return len(gone)


# ---- verification ------------------------------------------------------------------------------------------------------


def chains() -> list[UUID]:
    """Projects that have, or had, audit rows."""
    with_rows = set(AuditEvent.objects.order_by().values_list("project_id", flat=True).distinct())
    return sorted(with_rows | set(AuditMark.objects.order_by().values_list("project_id", flat=True).distinct()))


def audit_verify(project_id: UUID) -> Verdict:
    """Reads the whole chain. An edit, a removal, an insertion or a forged mark is a problem that names its row."""
    marks = list(AuditMark.objects.filter(project_id=project_id).order_by("seq"))
    ours = [mark for mark in marks if _is_signed(mark)]
    problems = [f"the signature of the {mark.kind} at row {mark.seq} is not ours" for mark in marks if mark not in ours]
    expired = max((mark for mark in ours if mark.kind == _Kind.EXPIRY), key=lambda mark: mark.seq, default=None)
    seq, previous = (0, GENESIS) if expired is None else (expired.seq, expired.hash)
    signed = {mark.seq: mark.hash for mark in ours if mark.seq > seq}
    first = seq
    for row in _rows(project_id):
        if row.seq != seq + 1:
            problems.append(f"rows {seq + 1} to {row.seq - 1} are missing" if row.seq > seq else f"row {row.seq} should be gone")
        elif row.hash != hash_of(previous, entry_of(row)):
            problems.append(f"row {row.seq} is not what was written")
        if signed.pop(row.seq, row.hash) != row.hash:
            problems.append(f"row {row.seq} is not the one that was signed")
        seq, previous = max(seq, row.seq), row.hash
    if signed:
        problems.append(f"rows to {max(signed)} were signed, the log ends at row {seq}")
    return Verdict(project_id, seq - first, first, sum(mark.kind == _Kind.HEAD for mark in ours), tuple(problems))


def entry_of(row: AuditEvent) -> Entry:
    """What the row's hash covers."""
    return Entry(row.seq, row.created_at, (row.project_id, row.controller_id, row.session_id), row.actor, row.action, row.detail)


def _rows(project_id: UUID) -> Iterator[AuditEvent]:
    """By pages: a cursor that stays open would hold a snapshot for as long as this takes."""
    seq = -1
    while page := list(AuditEvent.objects.filter(project_id=project_id, seq__gt=seq).order_by("seq")[:_ROWS_AT_ONCE]):
        yield from page
        seq = page[-1].seq


# ---- export ------------------------------------------------------------------------------------------------------------


def audit_export(project_ids: Iterable[UUID]) -> Iterator[dict[str, Any]]:
    """Every row and every mark of these projects as JSON objects; with the signing key's owner they prove the same as the tables do."""
    for project_id in project_ids:
        for row in _rows(project_id):
            yield {"type": "event", **_common(row), **_content(row)}
        for mark in AuditMark.objects.filter(project_id=project_id).order_by("seq"):
            yield {"type": mark.kind, **_common(mark), "signature": mark.signature}


def _common(row: AuditEvent | AuditMark) -> dict[str, Any]:
    at = row.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    return {"project_id": str(row.project_id), "seq": row.seq, "at": at, "hash": row.hash}


def _content(row: AuditEvent) -> dict[str, Any]:
    ids = {name: None if (value := getattr(row, name)) is None else str(value) for name in ("controller_id", "session_id")}
    return {**ids, "actor": row.actor, "action": row.action, "detail": row.detail}
