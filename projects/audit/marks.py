"""Signed marks of the chains of the audit log: their heads, and how far a chain has expired.

Whoever can write to the database could compute a whole chain anew. So the server signs the head of
each chain from time to time with a key that is not in the database, writes it into its log, and
repeats it in its own chain, where it outlives the chain that it is about. A mark that our keys did
not sign proves nothing and hides nothing: it is reported and otherwise ignored.
"""

import hmac
import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from itertools import islice
from typing import Final
from uuid import UUID

from django.db import transaction

from projects.audit.log import SERVER, audit
from projects.models import AuditEvent, AuditMark, Project
from projects.storage import clock
from projects.storage.sealing import signatures

logger = logging.getLogger(__name__)

Heads = dict[UUID, set[tuple[int, str]]]
"""Chain -> (row, hash) of rows that were once the newest of the chain."""

REPEAT_ACTION: Final = "audit.heads"
"""The row of the server's chain in which heads of other chains are repeated."""
_PURPOSE: Final = b"holdline audit mark"
_CHAINS_AT_ONCE: Final = 100
_MARKS_AT_ONCE: Final = 1000
# How many of the newest marks are searched for one of ours. If all of them are strangers the head
# is signed again: too often, never too rarely.
_MARKS_LOOKED_AT: Final = 32
_Kind = AuditMark.Kind


def mark(project_id: UUID, kind: AuditMark.Kind, seq: int, digest: str) -> None:
    """Signs that row ``seq`` of the chain has the hash ``digest``.

    Two processes may sign the same head; one mark is enough.
    """
    signature = next(_signatures(project_id, kind, seq, digest))
    AuditMark.objects.get_or_create(
        project_id=project_id,
        kind=kind,
        seq=seq,
        hash=digest,
        signature=signature,
        defaults={"created_at": clock.now()},
    )


def is_ours(one: AuditMark) -> bool:
    """Returns True if one of our keys signed the mark."""
    made = _signatures(one.project_id, one.kind, one.seq, one.hash)
    return any(hmac.compare_digest(signature, one.signature) for signature in made)


def strangers(marks: Sequence[AuditMark]) -> list[AuditMark]:
    """The marks that none of our keys signed.

    A mark of a retired key is no stranger if a newer key signed the same row before.
    """
    ours = {_content(one) for one in marks if is_ours(one)}
    return [one for one in marks if _content(one) not in ours]


def _content(one: AuditMark) -> tuple[UUID, str, int, str]:
    return one.project_id, one.kind, one.seq, one.hash


def _signatures(project_id: UUID, kind: str, seq: int, digest: str) -> Iterator[str]:
    """The signature of a row with each of our keys, the newest key first."""
    return signatures(_PURPOSE, f"{project_id} {kind} {seq} {digest}".encode())


# ---- heads ---------------------------------------------------------------------------------------


class Signer:
    """Signs heads for one process, and notices in the next round if a signed row was changed."""

    def __init__(self) -> None:
        self._signed: dict[UUID, tuple[int, str]] = {}
        self._looked_at = 0

    def sign(self, every: timedelta) -> int:
        """Signs heads that have grown and were not signed for ``every``. Returns their number."""
        self._report_strangers()
        projects = iter(list(Project.objects.values_list("id", flat=True)))
        signed = 0
        while batch := list(islice(projects, _CHAINS_AT_ONCE)):
            signed += self._sign_batch(batch, every)
        # Heads that were just repeated in the server's chain are signed with it at once.
        return signed + self._sign_batch([SERVER], timedelta(0) if signed else every)

    def _sign_batch(self, chains: Sequence[UUID], every: timedelta) -> int:
        heads = {}
        # Looked up outside of the transaction, which keeps other writers of SQLite waiting. Mostly
        # there is nothing to sign.
        for project_id in chains:
            self._check_what_was_signed(project_id)
            if (head := _head_to_sign(project_id, every)) is not None:
                heads[project_id] = head
        if not heads:
            return 0
        with transaction.atomic():
            for project_id, head in heads.items():
                mark(project_id, _Kind.HEAD, *head)
            others = {
                str(project_id): list(head)
                for project_id, head in heads.items()
                if project_id != SERVER
            }
            if others:
                # Last: it takes the lock that writers of the server's chain wait for.
                audit("server", REPEAT_ACTION, (None, None, None), {"heads": others})
        for project_id, head in heads.items():
            logger.info("audit log of project %s signed at row %d: %s", project_id, *head)
        self._signed.update(heads)
        return len(heads)

    def _check_what_was_signed(self, project_id: UUID) -> None:
        if (signed := self._signed.get(project_id)) is None:
            return
        found = (
            AuditEvent.objects.filter(project_id=project_id, seq=signed[0])
            .values_list("hash", flat=True)
            .first()
        )
        has_expired = (
            found is None
            and AuditMark.objects.filter(
                project_id=project_id, kind=_Kind.EXPIRY, seq__gte=signed[0]
            ).exists()
        )
        if found != signed[1] and not has_expired:
            # Reported once. verify_audit finds further changes.
            del self._signed[project_id]
            said = (
                "audit log of project %s was changed: row %d is not the one that was signed "
                "(manage.py verify_audit)"
            )
            logger.error(said, project_id, signed[0])

    def _report_strangers(self) -> None:
        """Logs chains with new marks that are not ours; at most _MARKS_AT_ONCE in one round."""
        new = list(AuditMark.objects.filter(id__gt=self._looked_at).order_by("id")[:_MARKS_AT_ONCE])
        if not new:
            return
        self._looked_at = new[-1].id
        for project_id in {one.project_id for one in new}:
            mine = [one for one in new if one.project_id == project_id]
            known = strangers(
                list(
                    AuditMark.objects.filter(
                        project_id=project_id,
                        kind__in={one.kind for one in mine},
                        seq__in={one.seq for one in mine},
                    )
                )
            )
            if known:
                said = (
                    "audit log of project %s: %d marks are not ours, the first at row %d "
                    "(manage.py verify_audit)"
                )
                logger.error(said, project_id, len(known), min(one.seq for one in known))


def _head_to_sign(project_id: UUID, every: timedelta) -> tuple[int, str] | None:
    head = (
        AuditEvent.objects.filter(project_id=project_id)
        .order_by("-seq")
        .values_list("seq", "hash")
        .first()
    )
    if head is None:
        return None
    last = newest_signed(project_id, seq__lte=head[0])
    # A mark from the future was made while the clock was ahead. It must not delay this one.
    if last is not None and (
        last.seq == head[0] or timedelta(0) <= clock.now() - last.created_at < every
    ):
        return None
    return head


def newest_signed(project_id: UUID, **among: int) -> AuditMark | None:
    """The newest head of the chain that we signed; ``among`` limits the rows."""
    marks = AuditMark.objects.filter(project_id=project_id, kind=_Kind.HEAD, **among)
    return next(filter(is_ours, marks.order_by("-seq", "-id")[:_MARKS_LOOKED_AT]), None)


_SIGNER: Final = Signer()
heads_sign: Final = _SIGNER.sign


def heads_repeated() -> Heads:
    """The newest head of each chain that the server's own chain repeats."""
    heads: dict[UUID, tuple[int, str]] = {}
    for detail in (
        AuditEvent.objects.filter(project_id=SERVER, action=REPEAT_ACTION)
        .values_list("detail", flat=True)
        .iterator()
    ):
        for project_id, (seq, digest) in detail.get("heads", {}).items():
            heads[UUID(project_id)] = max(heads.get(UUID(project_id), (0, "")), (seq, digest))
    return {project_id: {head} for project_id, head in heads.items()}


def joined(*known: Heads) -> Heads:
    """The union of several sets of heads."""
    heads: Heads = {}
    for one in known:
        for project_id, rows in one.items():
            heads.setdefault(project_id, set()).update(rows)
    return heads


# ---- keys ----------------------------------------------------------------------------------------


def marks_resign() -> tuple[int, int]:
    """Signs all our marks with the newest key, too, so that older keys may be retired.

    Returns the number of marks signed, and of marks that are not ours.
    """
    signed = foreign = 0
    for page in _pages():
        resigned = [
            AuditMark(
                created_at=one.created_at,
                project_id=one.project_id,
                kind=one.kind,
                seq=one.seq,
                hash=one.hash,
                signature=next(_signatures(one.project_id, one.kind, one.seq, one.hash)),
            )
            for one in page
            if is_ours(one)
        ]
        foreign += len(page) - len(resigned)
        known = set(
            AuditMark.objects.filter(signature__in=[one.signature for one in resigned]).values_list(
                "signature", flat=True
            )
        )
        # Two old keys may have signed the same row.
        missing = {one.signature: one for one in resigned if one.signature not in known}
        AuditMark.objects.bulk_create(missing.values())
        signed += len(missing)
    return signed, foreign


def _pages() -> Iterator[list[AuditMark]]:
    last = AuditMark.objects.order_by("-id").values_list("id", flat=True).first() or 0
    seen = 0
    while page := list(
        AuditMark.objects.filter(id__gt=seen, id__lte=last).order_by("id")[:_MARKS_AT_ONCE]
    ):
        yield page
        seen = page[-1].id


def chains_of(heads: Iterable[UUID]) -> list[UUID]:
    """All chains: of projects, of audit rows, of marks, and of ``heads`` known from elsewhere."""
    with_rows = set(AuditEvent.objects.order_by().values_list("project_id", flat=True).distinct())
    with_marks = set(AuditMark.objects.order_by().values_list("project_id", flat=True).distinct())
    return sorted(
        {SERVER, *with_rows, *with_marks, *Project.objects.values_list("id", flat=True), *heads}
    )
