"""The audit log: its rows, and the signed marks of their chains."""

from django.db import models
from django.utils import timezone


class AuditEvent(models.Model):
    """A row of the audit log: who did what, and when.

    The database refuses changes. Only ``projects.audit.log`` writes, in the transaction of the
    action itself. A migration that makes SQLite build this table anew must make its triggers anew,
    too.
    """

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    # No cascade: the record outlives what it speaks of. All zeros: the server itself.
    project_id = models.UUIDField(db_index=True)
    controller_id = models.UUIDField(null=True)
    session_id = models.UUIDField(null=True, db_index=True)
    actor = models.CharField(max_length=128)
    action = models.CharField(max_length=64)
    detail = models.JSONField(default=dict)
    # Its place in the chain of its project, and the hash that covers it and the row before it.
    seq = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(
                fields=("project_id", "seq"), name="one_audit_chain_per_project"
            ),
        )
        permissions = (("export_auditevent", "Can export the audit log"),)

    def __str__(self) -> str:
        return f"{self.project_id} {self.seq}"


class AuditMark(models.Model):
    """A signed statement about a chain: row ``seq`` has ``hash``. It is append-only like the chain.

    An ``expiry`` states that the chain may be gone up to and including this row, because its time
    was over. Several marks may be about one row: one for each key that signed it, and any that
    somebody else wrote, which must not keep ours out.
    """

    class Kind(models.TextChoices):
        HEAD = "head"
        EXPIRY = "expiry"

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(default=timezone.now)
    project_id = models.UUIDField()
    kind = models.CharField(max_length=8, choices=Kind)
    seq = models.PositiveBigIntegerField()
    hash = models.CharField(max_length=64)
    signature = models.CharField(max_length=64)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project_id", "kind", "seq", "hash", "signature"),
                name="one_audit_mark_per_word",
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.project_id} {self.seq}"
