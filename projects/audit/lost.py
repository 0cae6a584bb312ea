"""Signed heads that a restore of the database lost: known from a log, and not in the audit log."""

from typing import Any, Final
from uuid import UUID

from projects.audit.log import audit
from projects.audit.marks import Heads
from projects.models import AuditEvent

ACTION: Final = "audit.lost"
"""The row that names lost heads. Like any row it is in the chain, and is signed with it."""


def heads_lose(known: Heads, *, actor: str) -> None:
    """Put on record, in their own chains, which of the ``known`` heads are not there."""
    for project_id, heads in known.items():
        there = set(
            AuditEvent.objects.filter(
                project_id=project_id, seq__in=[seq for seq, _ in heads]
            ).values_list("seq", "hash")
        )
        gone = sorted(heads - there - heads_lost(project_id))
        if gone:
            detail: dict[str, Any] = {"heads": [list(head) for head in gone]}
            audit(actor, ACTION, (project_id, None, None), detail)


def heads_lost(project_id: UUID) -> set[tuple[int, str]]:
    """The heads of a chain that its own rows name as lost."""
    details = AuditEvent.objects.filter(project_id=project_id, action=ACTION)
    return {
        (seq, digest)
        for detail in details.values_list("detail", flat=True)
        for seq, digest in detail.get("heads", ())
    }
