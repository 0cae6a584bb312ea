"""Monitors of log files, and the bytes that they read."""

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from projects.models.accounts import Controller, Project


class Monitor(models.Model):
    """A monitor of a log file on a host. Between two reads it is this row and nothing else.

    ``file_*`` is where the next read begins: identity and mark of the file as the host gave them,
    which the server does not interpret, and a position in the file. ``next_offset`` counts the
    bytes read so far, over all files that had the name. ``[shown_from, shown_to)`` were in the last
    reply.
    """

    class Kind(models.TextChoices):
        """The kind of program that writes the file."""

        SSH = "ssh"
        SCRIPT = "script"
        FILE = "file"

    class Status(models.TextChoices):
        """The status of a monitor. A stopped monitor stays listed."""

        ACTIVE = "active"
        STOPPED = "stopped"

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="monitors", db_index=False
    )
    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="monitors")
    # Chosen by the caller; may be used again once its monitor is stopped.
    session_id = models.UUIDField()
    session_type = models.CharField(max_length=8, choices=Kind)
    log_file = models.TextField()
    metadata = models.JSONField(default=dict)
    status = models.CharField(max_length=8, choices=Status, default=Status.ACTIVE)
    file_identity = models.CharField(max_length=64)
    file_mark = models.CharField(max_length=128, blank=True)
    file_position = models.PositiveBigIntegerField(default=0)
    # [identity, mark, position] of the files that were read to their ends before this one, oldest
    # first. Programs may still write to them.
    file_former = models.JSONField(default=list)
    first_offset = models.PositiveBigIntegerField(default=0)
    next_offset = models.PositiveBigIntegerField(default=0)
    # Rises with every read that got something. Of two reads of one place only the first is stored.
    version = models.PositiveBigIntegerField(default=0)
    shown_from = models.PositiveBigIntegerField(default=0)
    shown_to = models.PositiveBigIntegerField(default=0)
    # The event of the last reply, for a retry with its request_id.
    shown_event = models.JSONField(default=dict)
    request_id = models.UUIDField(null=True, blank=True)
    started_by = models.CharField(max_length=128, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.CharField(max_length=128, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    # Null: the caller wanted to keep the log.
    log_deleted = models.BooleanField(null=True)
    log_kept_reason = models.CharField(max_length=32, blank=True)

    class Meta:
        ordering = ("-started_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("project", "session_id"),
                condition=Q(status="active"),
                name="one_active_monitor_per_id",
            ),
        )
        indexes = (
            models.Index(fields=("project", "session_id"), name="monitor_by_session_id"),
            # A page of the list is read in the order of one of these.
            models.Index(fields=("project", "-started_at"), name="monitors_of_project"),
            models.Index(fields=("-started_at",), name="monitors_by_start"),
            models.Index(
                fields=("project", "-started_at"),
                condition=Q(status="active"),
                name="active_monitors_of_project",
            ),
            models.Index(
                fields=("stopped_at",),
                condition=Q(stopped_at__isnull=False, first_offset__lt=F("next_offset")),
                name="stopped_monitors_with_bytes",
            ),
        )

    def __str__(self) -> str:
        return f"{self.session_id} {self.status}"


class MonitorChunk(models.Model):
    """Bytes ``[offset, offset + size)`` of a monitor, kept for searches and for retries."""

    id = models.BigAutoField(primary_key=True)
    monitor = models.ForeignKey(
        Monitor, on_delete=models.CASCADE, related_name="chunks", db_index=False
    )
    offset = models.PositiveBigIntegerField()
    size = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("monitor", "offset"), name="one_monitor_chunk_per_offset"
            ),
        )

    def __str__(self) -> str:
        return f"{self.monitor_id} @{self.offset}+{self.size}"
