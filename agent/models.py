"""Runs of language models as rows.

A run is its rows: any worker can take it up from them. Times are UTC, sizes bytes. Models have no
behaviour: ``runs.records`` and ``services`` write.
"""

import uuid

from django.db import models
from django.utils import timezone

from projects.models import ApprovalPolicy
from projects.models.sealed_field import SealedField


class AgentRun(models.Model):
    """One task for one model.

    To submit it is to insert this row. A worker takes it up under a lease, and gives it back by its
    state. ``draft`` is the model's text so far. ``notice`` says what a worker waits for, such as a
    busy endpoint. ``stop_reason`` is the code of the end, ``report`` describes it in words.
    ``said_next`` are messages of a person to the model before its next answer.
    """

    class State(models.TextChoices):
        """Any worker takes up a ``queued`` run, and a ``running`` run whose lease has expired."""

        QUEUED = "queued"
        RUNNING = "running"
        WAITING = "waiting", "waiting for an answer"
        FINISHED = "finished"
        FAILED = "failed"
        STOPPED = "stopped"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(
        "projects.Project", on_delete=models.CASCADE, related_name="agent_runs"
    )
    task = models.TextField()
    model = models.CharField(max_length=128)
    # Names of the controllers it may use; empty: all of the project.
    controllers = models.JSONField(default=list, blank=True)
    approvals = models.CharField(max_length=16, choices=ApprovalPolicy)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    stop_reason = models.CharField(max_length=32, blank=True)
    report = models.TextField(blank=True)
    # The model's own verdict on its task. Null: it gave none.
    is_successful = models.BooleanField(null=True)
    draft = models.TextField(blank=True)
    notice = models.TextField(blank=True)
    stop_requested_by = models.CharField(max_length=128, blank=True)
    submitted_by = models.CharField(max_length=128)
    # Who gave the model a message when they resumed the run. Null: nobody did.
    told_by = models.JSONField(null=True, blank=True)
    # Only a worker that asks for this run carries it out, such as a command with the model's key.
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
    # The time that workers spent on the run, without the time it waited for people.
    worked_seconds = models.FloatField(default=0.0)
    # Workers that were lost since the last complete step. A run that kills its workers is ended.
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
            ("control_run", "Can start and stop runs"),
            ("view_run_transcript", "Can read what a run said and saw"),
        )

    def __str__(self) -> str:
        return str(self.id)


class AgentStep(models.Model):
    """One answer of the model and the results of its calls.

    The row is written when the answer comes, and again after each call. ``calls`` are ``{id, name,
    arguments}``, without characters that cannot be stored, input typed at a hidden prompt,
    and input whose turn has not come: the call before it may raise such a prompt.
    ``sealed`` holds the calls as they came if these differ, encrypted, until the step is complete.
    ``results`` are ``{body, is_error, seconds}``, one per call that is over, in their order.
    ``said_before`` are the messages to the model before this answer, beside results. ``native`` is
    the answer in its endpoint's form.
    """

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(
        AgentRun, on_delete=models.CASCADE, related_name="steps", db_index=False
    )
    number = models.PositiveIntegerField()
    said_before = models.JSONField(default=list)
    text = models.TextField(blank=True)
    calls = models.JSONField(default=list)
    sealed = SealedField(null=True, blank=True)
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
        constraints = (
            models.UniqueConstraint(fields=("run", "number"), name="one_step_per_number"),
        )

    def __str__(self) -> str:
        return f"{self.run_id} #{self.number}"
