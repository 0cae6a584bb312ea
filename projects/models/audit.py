"""The record of who did what."""

from django.db import models
from django.utils import timezone


class AuditEvent(models.Model):
    """Who did what, when. Append-only; written in the transaction of the action itself."""

    id = models.BigAutoField(primary_key=True)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    # No cascade: the record outlives what it speaks of.
    project_id = models.UUIDField(null=True, db_index=True)
    controller_id = models.UUIDField(null=True)
    session_id = models.UUIDField(null=True, db_index=True)
    actor = models.CharField(max_length=128)
    action = models.CharField(max_length=64)
    detail = models.JSONField(default=dict)

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.actor} {self.action}"
