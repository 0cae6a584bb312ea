"""The rows that are the truth. No behaviour here: ``services`` writes for callers, ``inbound`` for controllers.

Invariants live in the database as constraints. Offsets and sizes are bytes; times are UTC.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.validators import validate_commands, validate_directories


class Project(models.Model):
    """A tenant: its members, tokens, controllers and limits."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.SlugField(max_length=64, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="projects")
    max_interactive_sessions = models.PositiveSmallIntegerField(default=1)
    # Null: the settings ALLOWED_COMMANDS and ALLOWED_DIRECTORIES.
    allowed_commands = models.JSONField(null=True, blank=True, validators=[validate_commands])
    allowed_directories = models.JSONField(null=True, blank=True, validators=[validate_directories])
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Credential(models.Model):
    """Shared by both kinds of credential: only a SHA-256 of the secret is stored; ``key_id`` finds the row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    key_id = models.CharField(max_length=32, unique=True, editable=False)
    digest = models.CharField(max_length=64, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True


class ApiToken(Credential):
    """What a caller shows: one project, and the scopes it may use there."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    # Names of ``projects.tools.toolsets``; empty: every tool.
    toolsets = models.JSONField(default=list)

    def __str__(self) -> str:
        return f"{self.name} ({self.key_id})"


class Controller(models.Model):
    """An enrolled host. It is online while its lease runs; ``epoch`` fences every connection but the newest."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="controllers")
    name = models.SlugField(max_length=64)
    epoch = models.PositiveBigIntegerField(default=0, editable=False)
    instance_id = models.CharField(max_length=64, blank=True, editable=False)
    boot_id = models.CharField(max_length=64, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    client_version = models.CharField(max_length=32, blank=True, editable=False)
    os = models.CharField(max_length=32, blank=True, editable=False)
    platform = models.CharField(max_length=128, blank=True, editable=False)
    hostname = models.CharField(max_length=255, blank=True, editable=False)
    capabilities = models.JSONField(default=list, editable=False)
    last_command_seq = models.PositiveBigIntegerField(default=0, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        constraints = (models.UniqueConstraint(fields=("project", "name"), name="controller_name_per_project"),)

    def __str__(self) -> str:
        return self.name


class ControllerCredential(Credential):
    """What a daemon shows. Two may overlap while one replaces the other."""

    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="credentials")

    def __str__(self) -> str:
        return self.key_id


class CommandSession(models.Model):
    """One execution of a command on a controller, live or finished.

    ``slot`` is the place the session takes of what its project may have of its ``kind`` while it is active; the partial
    unique index on it is what makes the limit race-free. ``terminal_*`` is the holder's last verdict.
    """

    class Kind(models.TextChoices):
        """Which tool family the session belongs to."""

        INTERACTIVE = "interactive"
        BACKGROUND = "background"
        ONE_SHOT = "one_shot"
        JOB = "job"

    class IoModeChoice(models.TextChoices):
        """What the program's standard streams are."""

        PTY = "pty"
        PIPE = "pipe"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="sessions")
    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="sessions")
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.INTERACTIVE)
    io_mode = models.CharField(max_length=8, choices=IoModeChoice, default=IoModeChoice.PTY)
    state = models.CharField(max_length=16, choices=[(s.value, s.value) for s in SessionState], default=SessionState.PENDING.value)
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    command = models.TextField()
    cwd = models.TextField(blank=True)
    rows = models.PositiveSmallIntegerField(default=24)
    cols = models.PositiveSmallIntegerField(default=120)
    lifetime_seconds = models.FloatField(default=300.0)
    # How much of each stream is kept, newest first to stay; null: as much as the settings say.
    retained_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    # When a caller last had to do with it, to a minute; a background session nobody asks for is ended.
    touched_at = models.DateTimeField(default=timezone.now)
    # Its output was taken away: on purpose, or because it was kept for long enough.
    cleared_at = models.DateTimeField(null=True, blank=True)
    started_by = models.CharField(max_length=128, blank=True)

    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    pid = models.PositiveIntegerField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    signal = models.CharField(max_length=16, blank=True)
    end_reason = models.CharField(max_length=16, blank=True)
    ended_by = models.CharField(max_length=128, blank=True)
    failure_code = models.CharField(max_length=32, blank=True)
    failure_message = models.TextField(blank=True)
    # How long the program ran, as its host measured it.
    duration_ms = models.PositiveBigIntegerField(null=True, blank=True)
    # Why the program did not get what was asked for, such as pipes instead of a terminal.
    warning = models.TextField(blank=True)
    survivors = models.JSONField(default=list)
    notes = models.JSONField(default=list)

    stdout_first_offset = models.PositiveBigIntegerField(default=0)
    stdout_next_offset = models.PositiveBigIntegerField(default=0)
    stderr_first_offset = models.PositiveBigIntegerField(default=0)
    stderr_next_offset = models.PositiveBigIntegerField(default=0)
    last_chunk_seq = models.PositiveBigIntegerField(default=0)
    stdout_sha256_ok = models.BooleanField(null=True)
    stderr_sha256_ok = models.BooleanField(null=True)

    # The end of what callers have been shown: the next turn's output starts here, so nothing printed between two calls is lost.
    shown_offset = models.PositiveBigIntegerField(default=0)
    input_seq = models.PositiveBigIntegerField(default=0)
    input_acked_seq = models.PositiveBigIntegerField(default=0)
    terminal_state = models.CharField(max_length=16, default="running")
    terminal_kind = models.CharField(max_length=8, blank=True)
    terminal_evidence = models.CharField(max_length=16, blank=True)
    terminal_prompt = models.TextField(blank=True)
    terminal_detail = models.TextField(blank=True)
    terminal_offset = models.PositiveBigIntegerField(default=0)
    terminal_input_seq = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("project", "kind", "slot"),
                condition=Q(state__in=sorted(s.value for s in ACTIVE_STATES)) & Q(slot__isnull=False),
                name="one_active_session_per_slot",
            ),
            models.CheckConstraint(condition=Q(stdout_first_offset__lte=F("stdout_next_offset")), name="stdout_offsets_ordered"),
            models.CheckConstraint(condition=Q(stderr_first_offset__lte=F("stderr_next_offset")), name="stderr_offsets_ordered"),
        )
        indexes = (
            models.Index(fields=("project", "state"), name="session_by_project_state"),
            models.Index(fields=("controller", "state"), name="session_by_controller_state"),
        )
        permissions = (
            ("view_transcript", "Can read what a session's terminal showed"),
            ("terminate_session", "Can terminate a running session"),
            ("clear_output", "Can clear the output of an ended session"),
        )

    def __str__(self) -> str:
        return str(self.id)


class StreamName(models.TextChoices):
    """Streams of a session; a PTY has only the first."""

    STDOUT = "stdout"
    STDERR = "stderr"


class OutputChunk(models.Model):
    """Contiguous bytes ``[offset, offset + size)`` of one stream; ``seq`` orders the chunks of a session across streams."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    stream = models.CharField(max_length=8, choices=StreamName)
    offset = models.PositiveBigIntegerField()
    size = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    data = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "stream", "offset"), name="one_chunk_per_offset"),)

    def __str__(self) -> str:
        return f"{self.session_id} {self.stream}@{self.offset}+{self.size}"


class OutputGap(models.Model):
    """Bytes ``[from_offset, to_offset)`` that are gone, and why."""

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, related_name="gaps")
    stream = models.CharField(max_length=8, choices=StreamName)
    from_offset = models.PositiveBigIntegerField()
    to_offset = models.PositiveBigIntegerField()
    reason = models.CharField(max_length=16)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "stream", "from_offset"), name="one_gap_per_offset"),
            models.CheckConstraint(condition=Q(from_offset__lt=F("to_offset")), name="gap_not_empty"),
        )

    def __str__(self) -> str:
        return f"{self.session_id} {self.stream} [{self.from_offset}, {self.to_offset})"


class ControllerCommand(models.Model):
    """Outbox row: one command for a controller. ``body`` is the encrypted frame, wiped once the command is settled."""

    id = models.BigAutoField(primary_key=True)
    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="commands", db_index=False)
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, related_name="commands")
    seq = models.PositiveBigIntegerField()
    type = models.CharField(max_length=32)
    input_seq = models.PositiveBigIntegerField(null=True, blank=True)
    body = models.BinaryField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    expires_at = models.DateTimeField(null=True, blank=True)
    sent_epoch = models.PositiveBigIntegerField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    failure_code = models.CharField(max_length=32, blank=True)
    failure_message = models.TextField(blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("controller", "seq"), name="dense_command_seq"),
            models.UniqueConstraint(fields=("session", "input_seq"), condition=Q(input_seq__isnull=False), name="one_command_per_input"),
        )
        indexes = (models.Index(fields=("controller", "seq"), condition=Q(settled_at__isnull=True), name="unsettled_commands"),)

    def __str__(self) -> str:
        return f"{self.type} #{self.seq}"


class ActionRequest(models.Model):
    """A caller-chosen ``request_id`` and what it did, so that a retry does it no second time."""

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE)
    request_id = models.UUIDField()
    action = models.CharField(max_length=64)
    body_digest = models.CharField(max_length=64)
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE)
    input_seq = models.PositiveBigIntegerField(null=True, blank=True)
    from_offset = models.PositiveBigIntegerField(default=0)
    command_seq = models.PositiveBigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("project", "request_id"), name="one_action_per_request_id"),)

    def __str__(self) -> str:
        return f"{self.action} {self.request_id}"


class ReadCursor(models.Model):
    """How far one caller has read one session "since the last read".

    ``[*_from, *_to)`` is the slice its last reply carried: the caller's next read goes on at ``*_to``, and a repeat of that reply's
    ``request_id`` gives the same slice again.
    """

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(CommandSession, on_delete=models.CASCADE, related_name="cursors", db_index=False)
    caller = models.CharField(max_length=128)
    stdout_from = models.PositiveBigIntegerField(default=0)
    stdout_to = models.PositiveBigIntegerField(default=0)
    stderr_from = models.PositiveBigIntegerField(default=0)
    stderr_to = models.PositiveBigIntegerField(default=0)
    request_id = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("session", "caller"), name="one_cursor_per_caller"),)

    def __str__(self) -> str:
        return f"{self.session_id} {self.caller}"


class Monitor(models.Model):
    """The tail of a log file on a host. Between two reads it is this row and nothing else, neither here nor on the host.

    ``file_*`` is where the next read goes on: identity and mark as the host gave them, opaque here, and a position in that file.
    ``next_offset`` counts the bytes read so far, over all files that had the name; ``[shown_from, shown_to)`` were in the last reply.
    """

    class Kind(models.TextChoices):
        """What writes the file."""

        SSH = "ssh"
        SCRIPT = "script"
        FILE = "file"

    class Status(models.TextChoices):
        """A stopped monitor stays on record."""

        ACTIVE = "active"
        STOPPED = "stopped"

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="monitors")
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
    first_offset = models.PositiveBigIntegerField(default=0)
    next_offset = models.PositiveBigIntegerField(default=0)
    # Rises with every read that got something: of two reads of the same place one is done over.
    version = models.PositiveBigIntegerField(default=0)
    shown_from = models.PositiveBigIntegerField(default=0)
    shown_to = models.PositiveBigIntegerField(default=0)
    # What else the last reply said, for a repeat of its request_id.
    shown_event = models.JSONField(default=dict)
    request_id = models.UUIDField(null=True, blank=True)
    started_by = models.CharField(max_length=128, blank=True)
    started_at = models.DateTimeField(default=timezone.now)
    read_at = models.DateTimeField(null=True, blank=True)
    stopped_by = models.CharField(max_length=128, blank=True)
    stopped_at = models.DateTimeField(null=True, blank=True)
    # Null: it was not to be deleted.
    log_deleted = models.BooleanField(null=True)
    log_kept_reason = models.CharField(max_length=32, blank=True)

    class Meta:
        ordering = ("-started_at",)
        constraints = (
            models.UniqueConstraint(fields=("project", "session_id"), condition=Q(status="active"), name="one_active_monitor_per_id"),
        )
        indexes = (models.Index(fields=("project", "session_id"), name="monitor_by_session_id"),)

    def __str__(self) -> str:
        return f"{self.session_id} {self.status}"


class MonitorChunk(models.Model):
    """Bytes ``[offset, offset + size)`` that a monitor has read, kept to be searched and for a repeated request."""

    id = models.BigAutoField(primary_key=True)
    monitor = models.ForeignKey(Monitor, on_delete=models.CASCADE, related_name="chunks", db_index=False)
    offset = models.PositiveBigIntegerField()
    size = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("monitor", "offset"), name="one_monitor_chunk_per_offset"),)

    def __str__(self) -> str:
        return f"{self.monitor_id} @{self.offset}+{self.size}"


class FileRequest(models.Model):
    """A question about a file that some caller waits for; ``answer`` is the host's frame. It lives as long as the call."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="file_requests")
    body = models.BinaryField()
    sent_epoch = models.PositiveBigIntegerField(default=0)
    answer = models.BinaryField(null=True, blank=True)
    expires_at = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return str(self.id)


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
