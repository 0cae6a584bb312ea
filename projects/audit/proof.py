"""Proof that the audit log is complete and unchanged.

It holds verification, export as JSON lines, and an expiry that leaves the rest verifiable.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import takewhile
from typing import Any, Final
from uuid import UUID

from django.db import transaction

from projects.audit.carried import ACKNOWLEDGE, NEEDED, carried
from projects.audit.log import GENESIS, SERVER, Entry, audit, hash_of
from projects.audit.lost import heads_lost
from projects.audit.marks import Heads, chains_of, heads_repeated, is_ours, mark, strangers
from projects.audit.unsigned import NO_SIGNED_HEAD, first_unsigned, was_passed_over
from projects.models import ApiToken, AuditEvent, AuditMark, CommandSession

EXPIRED_AT_ONCE: Final = 500
_ROWS_AT_ONCE: Final = 1000
_READS: Final = 3
"""A chain in which rows expire while it is read is read again, so many times at most."""
_MARKS_A_ROW: Final = 100
_Kind = AuditMark.Kind


@dataclass(frozen=True, slots=True)
class Verdict:
    """The result of verifying one project's chain.

    ``problems`` is empty if the chain is unbroken. ``expired`` counts rows that were removed in
    good order, ``acknowledged`` foreign marks that an operator knows of, ``lost`` known heads that
    were lost with a database that was restored. ``is_unsigned``: rows are older than a running
    server lets rows wait, and no head is signed, so nobody would find that they were rewritten.
    """

    project_id: UUID
    rows: int
    expired: int
    signed: int
    problems: tuple[str, ...]
    acknowledged: int = 0
    lost: int = 0
    is_unsigned: bool = False


# ---- expiry --------------------------------------------------------------------------------------


@transaction.atomic
def audit_expire(project_id: UUID, before: datetime, *, actor: str) -> int:
    """Removes the oldest rows of a chain that were written before ``before``. Returns their number.

    Call it until it returns 0. One call removes at most EXPIRED_AT_ONCE rows, only from the
    beginning of the chain, and never its newest row. It signs for what it removes, so that the rest
    verifies, and writes anew what verification still needs.
    """
    rows = AuditEvent.objects.filter(project_id=project_id)
    # One row more than may go, and without the last: so the newest row of the chain always stays.
    oldest = list(
        rows.order_by("seq").values_list("seq", "hash", "created_at")[: EXPIRED_AT_ONCE + 1]
    )[:-1]
    gone = list(takewhile(lambda row: row[2] < before, oldest))
    if not gone:
        return 0
    last_seq, digest, _ = gone[-1]
    mark(project_id, _Kind.EXPIRY, last_seq, digest)
    expired = rows.filter(seq__lte=last_seq)
    needed = list(carried(map(entry_of, expired.filter(action__in=NEEDED).order_by("seq"))))
    expired.delete()
    # Last, because they take the lock that writers of the chain wait for.
    for action, detail in needed:
        audit(actor, action, (project_id, None, None), detail)
    audit(actor, "audit.expire", (project_id, None, None), {"rows": len(gone), "to_seq": last_seq})
    return len(gone)


# ---- verification --------------------------------------------------------------------------------


def chains(known: Heads | None = None) -> list[UUID]:
    """The chains of all projects, of everything with audit rows, and of ``known`` heads.

    The server's own chain is among them.
    """
    return chains_of(heads_repeated() if known is None else known)


def audit_verify(project_id: UUID, known: Heads | None = None) -> Verdict:
    """Reads the whole chain and lists its problems, each with its row.

    A problem is an edit, a removal, an insertion, or a mark that is not ours and that no row of the
    chain acknowledges.

    Args:
        project_id: the chain.
        known: heads that the chain must have beside those of its own marks; None for the heads that
            the server's chain repeats.

    """
    for _ in range(_READS):
        verdict = _verified(project_id, known)
        # Rows that expired between the marks and the rows are missing for no wrong reason.
        if not verdict.problems or verdict.expired == _expired_to(project_id):
            break
    return verdict


def _expired_to(project_id: UUID) -> int:
    """The last row that was removed in good order; 0 if none was."""
    marks = AuditMark.objects.filter(project_id=project_id, kind=_Kind.EXPIRY)
    return next((one.seq for one in marks.order_by("-seq") if is_ours(one)), 0)


def _verified(project_id: UUID, known: Heads | None) -> Verdict:
    marks = list(AuditMark.objects.filter(project_id=project_id).order_by("seq", "id"))
    ours = [one for one in marks if is_ours(one)]
    foreign, acknowledged = strangers(marks), _acknowledged(project_id)
    problems = [
        f"the signature of the {one.kind} at row {one.seq} is not ours"
        for one in foreign
        if one.signature not in acknowledged
    ]
    known_foreign = len(foreign) - len(problems)
    expired = max(
        (one for one in ours if one.kind == _Kind.EXPIRY), key=lambda one: one.seq, default=None
    )
    seq, previous = (0, GENESIS) if expired is None else (expired.seq, expired.hash)
    heads_known = (heads_repeated() if known is None else known).get(project_id, set())
    lost = heads_known & heads_lost(project_id)
    signed = _signed_rows(ours, heads_known - lost, after=seq)
    first = seq
    for row in _rows(project_id):
        if row.seq != seq + 1:
            problems.append(
                f"rows {seq + 1} to {row.seq - 1} are missing"
                if row.seq > seq
                else f"row {row.seq} should be gone"
            )
        elif row.hash != hash_of(previous, entry_of(row)):
            problems.append(f"row {row.seq} is not what was written")
        if signed.pop(row.seq, {row.hash}) != {row.hash}:
            problems.append(f"row {row.seq} is not the one that was signed")
        seq, previous = max(seq, row.seq), row.hash
    if signed:
        problems.append(f"rows to {max(signed)} were signed, the log ends at row {seq}")
    if seq == 0 and not problems and _has_acted(project_id):
        problems.append("there are no rows, though the project has tokens or sessions")
    heads = {one.seq for one in ours if one.kind == _Kind.HEAD}
    missing = _missing_signature(project_id, max(heads, default=0))
    problems += [missing] if missing else []
    return Verdict(
        project_id,
        seq - first,
        first,
        len(heads),
        tuple(problems),
        known_foreign,
        len(lost),
        is_unsigned=not heads
        and not heads_known
        and first_unsigned(project_id, after=0) is not None,
    )


def _missing_signature(project_id: UUID, newest_head: int) -> str | None:
    """The problem of rows that are not signed, though heads of other chains were signed since.

    The end of a project's chain is known from the server's chain instead, which repeats its heads.
    """
    if newest_head and project_id != SERVER:
        return None
    found = first_unsigned(project_id, after=newest_head)
    if project_id == SERVER and not newest_head:
        # The times of rows are those that a rewritten chain says.
        seq, is_passed_over = 1, was_passed_over(project_id, None)
    elif found is not None:
        seq, is_passed_over = found[0], was_passed_over(project_id, found[1])
    else:
        return None
    said = f"rows from {seq} on are not signed, and heads of other chains were signed since"
    return f"{said} ({NO_SIGNED_HEAD})" if is_passed_over else None


def marks_acknowledge(project_id: UUID, *, actor: str, reason: str) -> list[AuditMark]:
    """Records that an operator knows of the marks of a chain that are not ours. Returns them.

    Such a mark vouches for nothing before and after that. The rows that say so are in the chain.
    """
    acknowledged = _acknowledged(project_id)
    marks = AuditMark.objects.filter(project_id=project_id).order_by("seq", "id")
    new = [one for one in strangers(list(marks)) if one.signature not in acknowledged]
    with transaction.atomic():
        for first in range(0, len(new), _MARKS_A_ROW):
            signatures = [one.signature for one in new[first : first + _MARKS_A_ROW]]
            detail = {"marks": signatures, "reason": reason}
            audit(actor, ACKNOWLEDGE, (project_id, None, None), detail)
    return new


def _acknowledged(project_id: UUID) -> set[str]:
    """The signatures of the marks that rows of the chain acknowledge."""
    details = AuditEvent.objects.filter(project_id=project_id, action=ACKNOWLEDGE)
    return {
        signature
        for detail in details.values_list("detail", flat=True)
        for signature in detail.get("marks", ())
    }


def _signed_rows(
    ours: Iterable[AuditMark], known: Iterable[tuple[int, str]], *, after: int
) -> dict[int, set[str]]:
    """The signed hashes of each row. A row of an unbroken chain has one."""
    signed: dict[int, set[str]] = {}
    for seq, digest in [*((one.seq, one.hash) for one in ours), *known]:
        if seq > after:
            signed.setdefault(seq, set()).add(digest)
    return signed


def _has_acted(project_id: UUID) -> bool:
    return (
        ApiToken.objects.filter(project_id=project_id).exists()
        or CommandSession.objects.filter(project_id=project_id).exists()
    )


def entry_of(row: AuditEvent) -> Entry:
    """The content of the row that its hash covers."""
    return Entry(
        row.seq,
        row.created_at,
        (row.project_id, row.controller_id, row.session_id),
        row.actor,
        row.action,
        row.detail,
    )


def _rows(project_id: UUID) -> Iterator[AuditEvent]:
    """The rows of a chain by pages: an open cursor would hold a snapshot all the time."""
    seq = -1
    while page := list(
        AuditEvent.objects.filter(project_id=project_id, seq__gt=seq).order_by("seq")[
            :_ROWS_AT_ONCE
        ]
    ):
        yield from page
        seq = page[-1].seq


# ---- export --------------------------------------------------------------------------------------


def audit_export(project_ids: Iterable[UUID]) -> Iterator[dict[str, Any]]:
    """Yields every row and every mark of these projects as JSON objects.

    With the signing key they prove the same as the tables do.
    """
    for project_id in project_ids:
        for row in _rows(project_id):
            yield {"type": "event", **_common(row), **_content(row)}
        for one in AuditMark.objects.filter(project_id=project_id).order_by("seq", "id"):
            yield {"type": one.kind, **_common(one), "signature": one.signature}


def _common(row: AuditEvent | AuditMark) -> dict[str, Any]:
    at = row.created_at.astimezone(UTC).isoformat(timespec="microseconds")
    return {"project_id": str(row.project_id), "seq": row.seq, "at": at, "hash": row.hash}


def _content(row: AuditEvent) -> dict[str, Any]:
    ids = {
        name: None if (value := getattr(row, name)) is None else str(value)
        for name in ("controller_id", "session_id")
    }
    return {**ids, "actor": row.actor, "action": row.action, "detail": row.detail}
