"""The targets where people are told of events, and each message that tells them."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils import timezone

from projects.models.accounts import Project
from projects.models.attention.events import AttentionEvent
from projects.models.sealed_field import SealedField


class AttentionTarget(models.Model):
    """A place where the people of a project are told of events.

    The address is sealed, because some services take anything from whoever knows it.
    """

    class Way(models.TextChoices):
        """The forms in which a message is sent."""

        WEBHOOK = "webhook"
        SLACK = "slack"
        NTFY = "ntfy"
        EMAIL = "email"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="attention_targets")
    name = models.SlugField(max_length=64)
    way = models.CharField(max_length=8, choices=Way)
    # The host of the address, to recognise the target by.
    place = models.CharField(max_length=255, editable=False)
    sealed_address = SealedField(editable=False)
    # The key that signs webhooks, or the access token of an ntfy server.
    sealed_key = SealedField(null=True, editable=False)
    # Words of ``attention_kinds.TELLABLE``; empty: everything.
    kinds = models.JSONField(default=list, blank=True)
    has_texts = models.BooleanField(
        "with texts",
        default=False,
        help_text=(
            "Messages also carry what the terminal asks and what the caller says that it wants. "
            "Without, they carry names, times and links only."
        ),
    )
    is_enabled = models.BooleanField("enabled", default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(fields=("project", "name"), name="one_target_per_name"),
        )

    def __str__(self) -> str:
        return self.name


class AttentionMessage(models.Model):
    """One message to one target, about one event or several that came together.

    Its id stays the same however often it is sent. ``due_at`` is the next attempt; null: it was
    received, or it is a dead letter (``dead_at``).
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    target = models.ForeignKey(
        AttentionTarget, on_delete=models.CASCADE, related_name="messages", db_index=False
    )
    events = models.ManyToManyField(AttentionEvent, related_name="messages")
    kind = models.CharField(max_length=32)
    event_count = models.PositiveIntegerField()
    # The facts (``projects.attention.bodies.News``). They get the target's form when they are sent:
    # a part of its address, such as the topic of ntfy, is in no column but the sealed one.
    body = models.TextField()
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    # From here on attempts go on for a day: it is put forward when somebody sends it again.
    began_at = models.DateTimeField(default=timezone.now)
    attempts = models.PositiveIntegerField(default=0)
    due_at = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    dead_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (
            models.Index(fields=("target", "-created_at"), name="messages_of_target"),
            models.Index(
                fields=("due_at",), condition=Q(due_at__isnull=False), name="messages_to_send"
            ),
            models.Index(
                fields=("dead_at",), condition=Q(dead_at__isnull=False), name="dead_letters"
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
