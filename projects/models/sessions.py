"""Sessions: one execution of a command each, and its output."""

import uuid

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from controller_client.protocol.session_state import ACTIVE_STATES, SessionState
from projects.models.accounts import Controller, Project
from projects.models.lifetime_clock import LifetimeClock
from projects.models.sealed_field import SealedField


class CommandSession(models.Model):
    """One execution of a command on a controller, active or ended.

    A project has a limited number of slots for each ``kind``. An active session takes one of them,
    and the partial unique index on ``slot`` makes that limit race-free. ``terminal_*`` is the
    holder's last verdict on the terminal.
    """

    class Kind(models.TextChoices):
        """The tool family that the session belongs to."""

        INTERACTIVE = "interactive"
        BACKGROUND = "background"
        ONE_SHOT = "one_shot"
        JOB = "job"

    class IoModeChoice(models.TextChoices):
        """The standard streams of the program: a terminal, or pipes."""

        PTY = "pty"
        PIPE = "pipe"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    # Both are found by the indexes that list their sessions.
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    controller = models.ForeignKey(
        Controller, on_delete=models.CASCADE, related_name="sessions", db_index=False
    )
    kind = models.CharField(max_length=16, choices=Kind, default=Kind.INTERACTIVE)
    io_mode = models.CharField(max_length=8, choices=IoModeChoice, default=IoModeChoice.PTY)
    state = models.CharField(
        max_length=16,
        choices=[(s.value, s.value) for s in SessionState],
        default=SessionState.PENDING.value,
    )
    slot = models.PositiveSmallIntegerField(null=True, blank=True)
    command = models.TextField()
    cwd = models.TextField(blank=True)
    rows = models.PositiveSmallIntegerField(default=24)
    cols = models.PositiveSmallIntegerField(default=120)
    lifetime_seconds = models.FloatField(default=300.0)
    # The host's last report of the lifetime, see ``lifetime_clock``. Null: no report.
    lifetime_ends_at = models.DateTimeField(null=True, blank=True)
    paused_at = models.DateTimeField(null=True, blank=True)
    pause_left_seconds = models.FloatField(null=True, blank=True)
    # How many of the newest bytes of each stream are kept. Null: as many as the settings say.
    retained_bytes = models.PositiveBigIntegerField(null=True, blank=True)
    # The last call about the session, to the minute. An idle background session is ended.
    touched_at = models.DateTimeField(default=timezone.now)
    # When its output was deleted: by an operator, or because it was kept for long enough.
    cleared_at = models.DateTimeField(null=True, blank=True)
    started_by = models.CharField(max_length=128, blank=True)

    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    # Since a HELLO named the session: how long connections have lasted whose HELLO did not.
    unnamed_seconds = models.FloatField(default=0.0, db_default=0.0, editable=False)
    pid = models.PositiveIntegerField(null=True, blank=True)
    exit_code = models.IntegerField(null=True, blank=True)
    signal = models.CharField(max_length=16, blank=True)
    end_reason = models.CharField(max_length=16, blank=True)
    ended_by = models.CharField(max_length=128, blank=True)
    failure_code = models.CharField(max_length=32, blank=True)
    failure_message = models.TextField(blank=True)
    # How long the program ran, as its host measured it.
    duration_ms = models.PositiveBigIntegerField(null=True, blank=True)
    # Why the program did not get what its caller asked for, such as pipes instead of a terminal.
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

    # The end of what callers have been shown: the next turn's output starts here, so nothing
    # printed between two calls is lost.
    shown_offset = models.PositiveBigIntegerField(default=0)
    input_seq = models.PositiveBigIntegerField(default=0)
    input_acked_seq = models.PositiveBigIntegerField(default=0)
    # The operator who alone may type now, and the note of the last operator.
    taken_over_by = models.CharField(max_length=128, blank=True)
    handback_note = models.TextField(blank=True)
    sealed_secrets = SealedField(null=True, editable=False)
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
                condition=Q(state__in=sorted(s.value for s in ACTIVE_STATES))
                & Q(slot__isnull=False),
                name="one_active_session_per_slot",
            ),
            models.CheckConstraint(
                condition=Q(stdout_first_offset__lte=F("stdout_next_offset")),
                name="stdout_offsets_ordered",
            ),
            models.CheckConstraint(
                condition=Q(stderr_first_offset__lte=F("stderr_next_offset")),
                name="stderr_offsets_ordered",
            ),
        )
        indexes = (
            # A page of a list is read in the order of one of these.
            models.Index(fields=("project", "-created_at"), name="sessions_of_project"),
            models.Index(fields=("controller", "-created_at"), name="sessions_of_controller"),
            models.Index(
                fields=("project", "-created_at"),
                condition=Q(state__in=sorted(s.value for s in ACTIVE_STATES)),
                name="active_sessions_of_project",
            ),
            models.Index(fields=("controller", "state"), name="session_by_controller_state"),
            # Lookups of the sweeper and the metrics must not cost more with each stored session.
            # No turn changes these columns.
            models.Index(
                fields=("state",),
                condition=Q(state__in=sorted(s.value for s in ACTIVE_STATES)),
                name="active_sessions",
            ),
            models.Index(fields=("ended_at",), name="session_by_end"),
            models.Index(
                fields=("kind", "ended_at"),
                condition=Q(ended_at__isnull=False, cleared_at__isnull=True),
                name="uncleared_sessions_of_kind",
            ),
        )
        permissions = (
            ("view_transcript", "Can read what a session's terminal showed"),
            ("terminate_session", "Can terminate a running session"),
            ("take_over_session", "Can take a session's keyboard over from its caller"),
            ("clear_output", "Can clear the output of an ended session"),
        )

    def __str__(self) -> str:
        return str(self.id)

    @property
    def lifetime_clock(self) -> LifetimeClock:
        """The lifetime as the session's host last reported it."""
        return LifetimeClock.of(self)


class LifetimeHold(models.Model):
    """A cause that pauses the lifetime of a session, one row each.

    A person has the keyboard, or somebody is asked for an approval.
    """

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, related_name="lifetime_holds", db_index=False
    )
    cause = models.CharField(max_length=64, db_index=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "cause"), name="one_hold_per_cause"),
        )

    def __str__(self) -> str:
        return f"{self.session_id}: {self.cause}"


class HeldKeyboard(models.Model):
    """A keyboard that an operator at a browser has, for as long as they have it.

    ``seen_at`` is when the browser was last heard, ``typed_at`` when something was last typed.
    ``asked_by`` is another operator who wants the keyboard. An operator without a browser, such as
    one at ``manage.py take_over``, has no such row.
    """

    session = models.OneToOneField(
        CommandSession, on_delete=models.CASCADE, primary_key=True, related_name="held_keyboard"
    )
    operator = models.CharField(max_length=128)
    seen_at = models.DateTimeField()
    typed_at = models.DateTimeField()
    asked_by = models.CharField(max_length=128, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"{self.session_id}: {self.operator}"


class StreamName(models.TextChoices):
    """The streams of a session; a PTY has only the first."""

    STDOUT = "stdout"
    STDERR = "stderr"


class OutputChunk(models.Model):
    """Contiguous bytes ``[offset, offset + size)`` of one stream.

    ``seq`` orders the chunks of a session across its streams. ``host_time`` and ``host_clock`` are
    when the host saw the first byte, by its wall clock and in seconds since it booted; null: the
    host did not say. ``created_at`` is when the server stored it.
    """

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, related_name="chunks", db_index=False
    )
    stream = models.CharField(max_length=8, choices=StreamName)
    offset = models.PositiveBigIntegerField()
    size = models.PositiveIntegerField()
    seq = models.PositiveBigIntegerField()
    data = models.BinaryField()
    host_time = models.DateTimeField(null=True)
    host_clock = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("session", "stream", "offset"), name="one_chunk_per_offset"
            ),
        )

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
            models.UniqueConstraint(
                fields=("session", "stream", "from_offset"), name="one_gap_per_offset"
            ),
            models.CheckConstraint(
                condition=Q(from_offset__lt=F("to_offset")), name="gap_not_empty"
            ),
        )

    def __str__(self) -> str:
        return f"{self.session_id} {self.stream} [{self.from_offset}, {self.to_offset})"


class SessionEvent(models.Model):
    """Something that happened in a session beside its output. Rows are only added.

    ``offset`` is the number of bytes of ``stdout`` that came before. The times are as in
    ``OutputChunk``. ``detail`` never holds typed text.
    """

    class Kind(models.TextChoices):
        """The kinds of things that happen."""

        PROMPT = "prompt"
        INPUT = "input"
        RESIZE = "resize"
        TAKE_OVER = "take_over"
        HAND_BACK = "hand_back"
        APPROVAL = "approval"
        GAP = "gap"
        LIFETIME = "lifetime"
        END = "end"

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, related_name="events", db_index=False
    )
    seq = models.PositiveBigIntegerField()
    kind = models.CharField(max_length=16, choices=Kind)
    offset = models.PositiveBigIntegerField()
    host_time = models.DateTimeField(null=True)
    host_clock = models.FloatField(null=True)
    created_at = models.DateTimeField(default=timezone.now)
    actor = models.CharField(max_length=128, blank=True)
    detail = models.JSONField(default=dict)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "seq"), name="one_event_per_number"),
        )

    def __str__(self) -> str:
        return f"{self.session_id} #{self.seq} {self.kind}"


class RecordingScreen(models.Model):
    """The screen of a terminal after the output before ``stdout`` and ``stderr``.

    ``place`` is the sum of both. ``time`` is in seconds since the recording began. ``state`` is
    deflated JSON that the terminal emulator of the console wrote.
    """

    id = models.BigAutoField(primary_key=True)
    session = models.ForeignKey(
        CommandSession, on_delete=models.CASCADE, related_name="screens", db_index=False
    )
    place = models.PositiveBigIntegerField()
    stdout = models.PositiveBigIntegerField()
    stderr = models.PositiveBigIntegerField()
    time = models.FloatField()
    state = models.BinaryField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("session", "place"), name="one_screen_per_place"),
        )

    def __str__(self) -> str:
        return f"{self.session_id} @{self.place}"
