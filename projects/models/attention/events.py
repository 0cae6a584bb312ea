"""The events that want a person's attention."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from projects.models.accounts import Controller, Project
from projects.models.attention_kinds import TITLES, AttentionKind
from projects.models.sessions import CommandSession


class AttentionEvent(models.Model):
    """Something that wants a person, or that a person wants to know: one row for each cause.

    ``cause`` names what happened, so that a cause that is seen again adds no second event. The
    event is open until ``resolved_at``, and again if its cause comes back. An event of something
    that is over as it happens, such as the end of a run, is resolved from the start.

    ``due_at`` is when targets are to be told next: of the event, or of its end if they were told
    before. Null: there is nothing to tell.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    cause = models.CharField(max_length=160, unique=True)
    kind = models.CharField(max_length=16, choices=AttentionKind)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="attention_events", db_index=False
    )
    controller = models.ForeignKey(
        Controller, on_delete=models.CASCADE, null=True, related_name="attention_events"
    )
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, null=True, related_name="attention_events"
    )
    # The page that is about the event, as a path on this server.
    path = models.CharField(max_length=200, blank=True)
    # What a caller says that it wants, in the caller's words.
    wanted = models.CharField(max_length=200, blank=True)
    detail = models.JSONField(default=dict)
    raised_at = models.DateTimeField(default=timezone.now)
    due_at = models.DateTimeField(null=True)
    told_at = models.DateTimeField(null=True)
    snoozed_until = models.DateTimeField(null=True)
    snoozed_by = models.CharField(max_length=128, blank=True)
    resolved_at = models.DateTimeField(null=True)
    resolution = models.CharField(max_length=32, blank=True)
    resolved_by = models.CharField(max_length=128, blank=True)

    class Meta:
        ordering = ("-raised_at",)
        indexes = (
            models.Index(fields=("project", "-raised_at"), name="attention_of_project"),
            models.Index(fields=("raised_at",), name="attention_by_age"),
            models.Index(
                # Its first column is the same in all of its rows, so that every lookup finds it.
                fields=("resolved_at", "raised_at"),
                condition=Q(resolved_at__isnull=True),
                name="open_attention",
            ),
            models.Index(
                fields=("due_at",), condition=Q(due_at__isnull=False), name="attention_to_tell"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"

    @property
    def title(self) -> str:
        """The event in a few words."""
        return TITLES[self.kind][0]
