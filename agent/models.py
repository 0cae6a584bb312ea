"""Runs of a language model on the tools, as rows. A run is its rows: whoever has them can go on with it.

Times are UTC, sizes bytes. No behaviour here: ``records`` and ``services`` write.
"""

import uuid

from django.db import models
from django.utils import timezone


class Approvals(models.TextChoices):
    """Which calls a person is asked about first."""

    AUTO = "auto", "none"
    ASK_RISKY = "ask-risky", "risky ones"
    ASK_ALL = "ask-all", "all that act"


class ProjectApprovals(models.Model):
    """The policy of one project; without a row the setting holds."""

    project = models.OneToOneField("projects.Project", on_delete=models.CASCADE, related_name="agent_approvals")
    approvals = models.CharField(max_length=16, choices=Approvals, default=Approvals.ASK_RISKY)

    class Meta:
        verbose_name_plural = "project approvals"

    def __str__(self) -> str:
        return f"{self.project}: {self.approvals}"


class AgentRun(models.Model):
    """One task given to one model. Submitting it is this row; a worker takes it up under a lease and gives it back by state.

    ``draft`` is what the model is saying at this moment. ``stop_reason`` names how it ended, ``report`` says it in words.
    ``notice`` says what a worker waits for, such as an endpoint that is busy.
    ``said_next`` is what a person has to say to the model before its next answer.
    """

    class State(models.TextChoices):
        """``queued`` and, once their lease ran out, ``running`` ones are taken up by any worker."""

        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting", "waiting for an answer"
        FINISHED = "finished"
        FAILED = "failed"
        STOPPED = "stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey("projects.Project", on_delete=models.CASCADE, related_name="agent_runs")
    task = models.TextField()
    model = models.CharField(max_length=128)
    # Names of the controllers it may use; empty: all of the project.
    controllers = models.JSONField(default=list, blank=True)
    approvals = models.CharField(max_length=16, choices=Approvals)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    stop_reason = models.CharField(max_length=32, blank=True)
    report = models.TextField(blank=True)
    # Whether the task was done, in the model's own judgement; null: it did not say.
    is_successful = models.BooleanField(null=True)
    draft = models.TextField(blank=True)
    notice = models.TextField(blank=True)
    stop_requested_by = models.CharField(max_length=128, blank=True)
    submitted_by = models.CharField(max_length=128)
    # Carried out only by a worker that asks for this very run, such as a command with the key to its model.
    is_reserved = models.BooleanField(default=False)
    said_next = models.JSONField(default=list, blank=True)

    max_steps = models.PositiveIntegerField()
    max_tokens = models.PositiveBigIntegerField()
    max_cost_cents = models.PositiveIntegerField()
    max_run_seconds = models.FloatField()
    output_bytes = models.PositiveIntegerField()
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_cents = models.FloatField(default=0.0)
    # Time in the hands of workers; waiting for people is not in it.
    worked_seconds = models.FloatField(default=0.0)
    # How often a worker was lost since the last complete step: a run that kills its workers ends.
    interruptions = models.PositiveIntegerField(default=0)
    nudged_at_step = models.PositiveIntegerField(default=0)

    lease = models.UUIDField(null=True, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, db_index=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-created_at",)
        indexes = (models.Index(fields=("state", "created_at"), name="agent_run_by_state"),)
        permissions = (
            ("control_run", "Can start and stop runs, answer approvals and take over"),
            ("view_run_transcript", "Can read what a run said and saw"),
        )

    def __str__(self) -> str:
        return str(self.id)


class AgentStep(models.Model):
    """One answer of the model and what became of the calls in it: written when it came, again after each call.

    ``calls`` are ``{id, name, arguments}``; an argument typed at a hidden prompt is not in them. ``sealed`` holds the calls as they came,
    encrypted, until the step is complete. ``results`` are ``{body, is_error, seconds}``, one per call that is over, in their order.
    ``said_before`` is what the model was told in front of this answer beside results. ``native`` is the answer in its endpoint's form.
    """

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE, related_name="steps", db_index=False)
    number = models.PositiveIntegerField()
    said_before = models.JSONField(default=list)
    text = models.TextField(blank=True)
    calls = models.JSONField(default=list)
    sealed = models.BinaryField(null=True, blank=True)
    results = models.JSONField(default=list)
    native = models.JSONField(null=True, blank=True)
    input_tokens = models.PositiveBigIntegerField(default=0)
    output_tokens = models.PositiveBigIntegerField(default=0)
    cost_cents = models.FloatField(default=0.0)
    is_complete = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)
    completed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("run", "number"), name="one_step_per_number"),)

    def __str__(self) -> str:
        return f"{self.run_id} #{self.number}"


class AgentApproval(models.Model):
    """A call that a person is asked about before it is carried out."""

    class Answer(models.TextChoices):
        """What the person said."""

        PENDING = "pending"
        APPROVED = "approved"
        DENIED = "denied"

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(AgentRun, on_delete=models.CASCADE, related_name="approval_requests", db_index=False)
    step_number = models.PositiveIntegerField()
    call_index = models.PositiveIntegerField()
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict)
    risk = models.CharField(max_length=16)
    risk_reason = models.TextField(blank=True)
    answer = models.CharField(max_length=16, choices=Answer, default=Answer.PENDING)
    answered_by = models.CharField(max_length=128, blank=True)
    reason = models.TextField(blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    answered_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("id",)
        constraints = (models.UniqueConstraint(fields=("run", "step_number", "call_index"), name="one_approval_per_call"),)

    def __str__(self) -> str:
        return f"{self.tool} of {self.run_id}"
