"""Requests of callers: the outbox, retries, approvals, read cursors, questions about files."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.db import models
from django.db.models import Q
from django.utils import timezone

from projects.models.accounts import Controller, Project
from projects.models.monitoring import Monitor
from projects.models.sealed_field import SealedField
from projects.models.sessions import CommandSession


class ControllerCommand(models.Model):
    """Outbox row: one command for a controller.

    ``body`` is the encrypted frame, wiped once the command is settled.
    """

    id = models.BigAutoField(primary_key=True)
    controller = models.ForeignKey(
        Controller, on_delete=models.CASCADE, related_name="commands", db_index=False
    )
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, related_name="commands")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=32)
    input_seq = models.PositiveBigIntegerField(null=True, blank=True)
    # The API token of its caller. A revocation of the token drops the command if it is unsent.
    token_id = models.UUIDField(null=True, blank=True)
    body = SealedField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    # The detail of the session event that the host's answer becomes, with its ``actor``.
    event = models.JSONField(null=True)
    sent_epoch = models.PositiveBigIntegerField(null=True, blank=True)
    # Sent by more than one connection. A host that lost the holder knows nothing of the first time,
    # so its answer says nothing about it either.
    is_sent_again = models.BooleanField(default=False, db_default=False)
    # Of a START without an answer: the lock of the daemon that was sent it, once a daemon with
    # another lock has connected. The other one may run on a copy, and would start it again.
    kept_for_lock = models.CharField(max_length=64, blank=True, default="", db_default="")
    settled_at = models.DateTimeField(null=True, blank=True)
    failure_code = models.CharField(max_length=32, blank=True)
    failure_message = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("controller", "seq"), name="dense_command_seq"),
            models.UniqueConstraint(
                fields=("session", "input_seq"),
                condition=Q(input_seq__isnull=False),
                name="one_command_per_input",
            ),
        )
        indexes = (
            models.Index(
                fields=("controller", "seq"),
                condition=Q(settled_at__isnull=True),
                name="unsettled_commands",
            ),
        )

    def __str__(self) -> str:
        return f"{self.type} #{self.seq}"


class ActionRequest(models.Model):
    """A ``request_id`` of a caller and what it did, so that a retry does nothing a second time."""

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    request_id = models.UUIDField()
    action = models.CharField(max_length=64)
    body_digest = models.CharField(max_length=64)
    # The session or the monitor that it acted on. The answer about a monitor is kept, because it
    # cannot be made again.
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, null=True)
    monitor = models.ForeignKey(Monitor, on_delete=models.CASCADE, null=True)
    answer = models.JSONField(null=True)
    input_seq = models.PositiveBigIntegerField(null=True, blank=True)
    from_offset = models.PositiveBigIntegerField(default=0)
    command_seq = models.PositiveBigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("project", "request_id"), name="one_action_per_request_id"
            ),
        )

    def __str__(self) -> str:
        return f"{self.action} {self.request_id}"


class ReadCursor(models.Model):
    """The position of one caller in one session, for reads "since the last read".

    ``[*_from, *_to)`` is the range of the last reply. The next read begins at ``*_to``, and a retry
    with the same ``request_id`` gets the same range again.
    """

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, related_name="cursors", db_index=False
    )
    caller = models.CharField(max_length=128)
    stdout_from = models.PositiveBigIntegerField(default=0)
    stdout_to = models.PositiveBigIntegerField(default=0)
    stderr_from = models.PositiveBigIntegerField(default=0)
    stderr_to = models.PositiveBigIntegerField(default=0)
    request_id = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "caller"), name="one_cursor_per_caller"),
        )

    def __str__(self) -> str:
        return f"{self.session_id} {self.caller}"


class FileRequest(models.Model):
    """A question about a file that a caller waits for; ``answer`` is the host's frame.

    The row lives as long as the call.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    controller = models.ForeignKey(
        Controller, on_delete=models.CASCADE, related_name="file_requests"
    )
    body = models.BinaryField()
    sent_epoch = models.PositiveBigIntegerField(default=0)
    answer = models.BinaryField(null=True, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)


class Approval(models.Model):
    """A call that a person is asked about before it is carried out.

    The call is carried out under ``request_id``, so at most once. ``digest`` covers the tool and
    its arguments, also those that nobody may read.
    """

    class Answer(models.TextChoices):
        """The end of the question. Every answer but ``pending`` is final."""

        PENDING = "pending"
        APPROVED = "approved"
        DENIED = "denied"
        EXPIRED = "expired"
        WITHDRAWN = "withdrawn"

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="approvals_asked")
    request_id = models.UUIDField()
    # The caller as audit rows name it, its token if it has one, and the person it acts for.
    asked_by = models.CharField(max_length=128)
    token_id = models.UUIDField(null=True, blank=True)
    owner = models.CharField(max_length=160, blank=True)
    # Of a call of a run: the run, the step and the place of the call in it, and ``told_by``: those
    # who resumed the run with a message.
    origin = models.JSONField(default=dict, blank=True)
    tool = models.CharField(max_length=64)
    # JSON, as a person is shown it: typed answers to a question for a secret are left out.
    sealed_arguments = SealedField()
    digest = models.CharField(max_length=64)
    risk = models.CharField(max_length=16)
    risk_reason = models.TextField(blank=True)
    # The target: the controller, and for calls about a session also its id and command.
    controller_id = models.UUIDField(null=True, blank=True)
    host = models.CharField(max_length=128, blank=True)
    session_id = models.UUIDField(null=True, blank=True)
    session_command = models.TextField(blank=True)
    # The prompt of the session, and the number of its newest input, when the call was asked about.
    input_seq = models.PositiveBigIntegerField(null=True, blank=True)
    prompt = models.TextField(blank=True)
    # Of a start: the files that its host names for it, as [path, SHA-256]. Null: not known.
    files = models.JSONField(null=True)
    # Other sessions of the caller that were alive. Their programs can change files before the
    # answer.
    live_programs = models.PositiveIntegerField(default=0)
    answer = models.CharField(max_length=16, choices=Answer, default=Answer.PENDING)
    answered_by = models.CharField(max_length=160, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # Until when it can be answered; once it is approved, until when the call can begin. Null: for
    # good.
    expires_at = models.DateTimeField(null=True, blank=True)
    answered_at = models.DateTimeField(null=True, blank=True)
    # When the call was carried out, or when the other rows that say so were removed with its
    # session.
    used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (
            models.UniqueConstraint(
                fields=("project", "request_id"), name="one_approval_per_request_id"
            ),
        )
        indexes = (
            models.Index(
                fields=("project", "id"), condition=Q(answer="pending"), name="pending_approvals"
            ),
            models.Index(fields=("asked_by", "id"), name="approvals_by_caller"),
            models.Index(fields=("answered_at",), name="approvals_by_end"),
        )
        permissions = (("answer_approval", "Can approve and deny calls"),)

    def __str__(self) -> str:
        return f"{self.tool} of {self.asked_by}"

    @property
    def place(self) -> tuple[int, int]:
        """The step and the place of the call in its run; zeros if no run made it."""
        origin: Mapping[str, Any] = self.origin
        return int(origin.get("step", 0)), int(origin.get("call", 0))
