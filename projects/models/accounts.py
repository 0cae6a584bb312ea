"""Projects, their controllers, and the tokens and credentials that callers and hosts show."""

import uuid
from datetime import timedelta
from typing import ClassVar, Final

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from projects.conf import conf
from projects.models.validators import (
    validate_attention,
    validate_commands,
    validate_directories,
    validate_labels,
    validate_limits,
)

MAX_LIFETIME_SECONDS: Final = 7 * 24 * 3600
"""No project may allow a longer lifetime of a session."""
_LIFETIMES: Final = [MinValueValidator(1), MaxValueValidator(MAX_LIFETIME_SECONDS)]


class ApprovalPolicy(models.TextChoices):
    """The calls that a person is asked about first, from the laxest to the strictest policy."""

    AUTO = "auto", "none"
    ASK_RISKY = "ask-risky", "all that are not known to be harmless"
    ASK_ALL = "ask-all", "all that do more than read"


_STRICTNESS: Final = {policy: rank for rank, policy in enumerate(ApprovalPolicy.values)}


def stricter(one: str, other: str) -> str:
    """The stricter of two policies. A policy that nobody knows is the strictest."""
    return max(one, other, key=lambda policy: _STRICTNESS.get(policy, len(_STRICTNESS)))


class Project(models.Model):
    """A tenant: its members, tokens, controllers and limits."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.SlugField(max_length=64, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="projects")
    max_interactive_sessions = models.PositiveSmallIntegerField(
        default=1, help_text="How many interactive sessions may be active at once."
    )
    default_lifetime_seconds = models.PositiveIntegerField(
        "default lifetime (seconds)",
        null=True,
        blank=True,
        validators=_LIFETIMES,
        help_text=(
            "How long an interactive session lives when its caller does not say."
            " Empty: INTERACTIVE_CMD_TIMEOUT_SECONDS, or the maximum if that is shorter."
        ),
    )
    max_lifetime_seconds = models.PositiveIntegerField(
        "maximum lifetime (seconds)",
        null=True,
        blank=True,
        validators=_LIFETIMES,
        help_text=(
            "The longest lifetime a caller may ask for an interactive session; a longer one is "
            "refused."
            " Empty: INTERACTIVE_CMD_TIMEOUT_SECONDS. At most 604800 (seven days)."
        ),
    )
    max_pause_minutes = models.PositiveSmallIntegerField(
        "longest pause (minutes)",
        default=30,
        db_default=30,
        help_text=(
            "A session's lifetime does not run while a person has its keyboard or an approval is "
            "open,"
            " for at most so many minutes in all. 0: it always runs."
        ),
    )
    allowed_commands = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_commands],
        help_text=(
            'The programs that may be started, as a JSON list such as ["git", "ls", "bash:shell"].'
            " Empty or null: the setting ALLOWED_COMMANDS. []: none."
        ),
    )
    allowed_directories = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_directories],
        help_text=(
            'Where programs may be started, as a JSON list of absolute paths such as ["/srv/app"].'
            " Empty or null: the setting ALLOWED_DIRECTORIES."
        ),
    )
    session_limits = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_limits],
        help_text=(
            'What one session may use, as a JSON object such as {"processes": 64, "memory_bytes": '
            "1073741824}."
            " A limit that is not named is the setting's; null removes it."
        ),
    )
    strict_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text=(
            "Strict recording: a host terminates a program whose output the server has not stored "
            "after so many seconds."
            " Empty: the program waits instead, and its output is kept for it."
        ),
    )
    keeps_output = models.BooleanField(
        "keeps what was printed after the end",
        default=True,
        db_default=True,
        help_text=(
            "Off: a minute after the end of a session, all that it printed is deleted, with the "
            "prompts. Who started it, who typed, and how it ended stay."
        ),
    )
    output_retention_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=(
            "How long the output of a session of any kind stays after its end. 0: it is never "
            "removed."
            " Empty: HOLDLINE_OUTPUT_RETENTION_SECONDS, for commands "
            "HOLDLINE_COMMAND_RETENTION_SECONDS."
        ),
    )
    session_retention_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text=(
            "How long a session stays listed after its end. 0: it is never removed. Empty: "
            "HOLDLINE_SESSION_RETENTION_SECONDS."
        ),
    )
    attention_seconds = models.JSONField(
        null=True,
        blank=True,
        validators=[validate_attention],
        help_text=(
            "What wants a person, as a JSON object of kinds, each with the seconds after which "
            'people are told, such as {"secret_wanted": 5, "input_wanted": 300}.'
            " A kind that is not named is not noted. Empty or null: none."
        ),
    )
    approvals = models.CharField(
        max_length=16,
        choices=ApprovalPolicy,
        default=ApprovalPolicy.AUTO,
        db_default=ApprovalPolicy.AUTO,
        help_text="The calls of every caller that wait for a person's approval.",
    )
    run_approvals = models.CharField(
        "approvals of agent runs",
        max_length=16,
        choices=ApprovalPolicy,
        blank=True,
        default="",
        db_default="",
        help_text=(
            "The same for agent runs alone; the stricter policy holds. Empty: "
            "HOLDLINE_AGENT_APPROVALS."
        ),
    )
    wants_four_eyes = models.BooleanField(
        "four eyes",
        default=False,
        db_default=False,
        help_text="Nobody answers for calls of their own tokens and runs.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        permissions = (("view_all_projects", "Sees every project, also as no member of it"),)

    def __str__(self) -> str:
        return self.name

    @property
    def longest_lifetime_seconds(self) -> float:
        """The longest lifetime of a session: the project's own maximum, or the server's."""
        return self.max_lifetime_seconds or conf.interactive_cmd_timeout_seconds

    def clean(self) -> None:
        """Raises ValidationError for an odd list or object, and for a lifetime over the maximum."""
        self._check_json()
        longest = self.longest_lifetime_seconds
        if self.default_lifetime_seconds and self.default_lifetime_seconds > longest:
            message = (
                f"The default lifetime is longer than the maximum, which is {longest:g} seconds."
            )
            raise ValidationError({"default_lifetime_seconds": message})

    def _check_json(self) -> None:
        """Validates the columns whose values Django takes for empty, such as ``{}`` for a list."""
        for field in self._meta.fields:
            if isinstance(field, models.JSONField):
                try:
                    for validate in field.validators:
                        validate(getattr(self, field.name))
                except ValidationError as error:
                    raise ValidationError({field.name: error}) from None


class Credential(models.Model):
    """The common columns of tokens, credentials and codes.

    Only a SHA-256 of the secret is stored. ``key_id`` finds the row.
    """

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
    """The token of a caller: one project, and the scopes that the caller has there."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="api_tokens")
    name = models.CharField(max_length=64)
    scopes = models.JSONField(default=list)
    # Names of ``projects.accounts.toolsets``; empty: every tool.
    toolsets = models.JSONField(default=list)
    # The user who made the token in the admin: it is valid while the user is active and in the
    # project. Null: made with a command.
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="api_tokens",
    )
    # Null: the settings STARTS_PER_MINUTE and INPUT_BYTES_PER_MINUTE; 0: no limit.
    starts_per_minute = models.PositiveIntegerField(null=True, blank=True)
    input_bytes_per_minute = models.PositiveIntegerField(null=True, blank=True)
    # Of this policy and that of the project the stricter holds.
    approvals = models.CharField(
        max_length=16,
        choices=ApprovalPolicy,
        default=ApprovalPolicy.AUTO,
        db_default=ApprovalPolicy.AUTO,
        help_text="The stricter of this and the project's policy holds.",
    )
    # When a restore brought the token back: it may have been revoked since the backup. Null: it is
    # not suspended.
    suspended_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "API token"
        permissions = (("manage_apitoken", "Can make and revoke API tokens"),)

    def __str__(self) -> str:
        return self.key_id


class Controller(models.Model):
    """An enrolled host.

    It is online while its lease runs; ``epoch`` fences every connection but the newest.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="controllers")
    name = models.SlugField(max_length=64)
    epoch = models.PositiveBigIntegerField(default=0, editable=False)
    instance_id = models.CharField(max_length=64, blank=True, editable=False)
    boot_id = models.CharField(max_length=64, blank=True, editable=False)
    # A host never has the id of an earlier boot again: a daemon that shows it runs on a copy.
    previous_boot_id = models.CharField(max_length=64, blank=True, editable=False)
    # The lock of the daemon that is connected or was last. Empty: the daemon is too old to name it.
    lock_id = models.CharField(max_length=64, blank=True, default="", db_default="", editable=False)
    connected_credential_id = models.UUIDField(null=True, editable=False)
    # The last refusal of a daemon that seemed to have a copy of the credential, until an operator
    # dismisses it.
    alarmed_at = models.DateTimeField(null=True, blank=True, editable=False)
    alarm = models.CharField(max_length=512, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    client_version = models.CharField(max_length=32, blank=True, editable=False)
    os = models.CharField(max_length=32, blank=True, editable=False)
    platform = models.CharField(max_length=128, blank=True, editable=False)
    hostname = models.CharField(max_length=255, blank=True, editable=False)
    capabilities = models.JSONField(default=list, editable=False)
    # The directories whose logs may be monitored. Null: the daemon is too old to report them.
    log_roots = models.JSONField(null=True, editable=False)
    # Words of the operator and of the host's own configuration, with spaces between them.
    labels = models.CharField(
        max_length=512, blank=True, default="", db_default="", validators=[validate_labels]
    )
    last_command_seq = models.PositiveBigIntegerField(default=0, editable=False)
    # How long a terminal of the host took to echo, seen from the server, and what the host said of
    # its policy then. Null: not known.
    echo_ms = models.FloatField(null=True, editable=False)
    echoed_at = models.DateTimeField(null=True, editable=False)
    policy_digest = models.CharField(
        max_length=64, blank=True, default="", db_default="", editable=False
    )
    is_stopped = models.BooleanField(default=False, db_default=False, editable=False)
    # When the host enrolled; an operator has to approve it yet. Null: it is approved.
    awaits_approval_since = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        # A revoked controller keeps its rows and frees its name. The next owner of the name is
        # another controller.
        constraints = (
            models.UniqueConstraint(
                fields=("project", "name"),
                condition=Q(revoked_at__isnull=True),
                name="active_controller_name_per_project",
            ),
        )
        permissions = (
            ("manage_controller", "Can enrol hosts, and revoke them and their credentials"),
        )

    def __str__(self) -> str:
        return self.name


class ControllerCredential(Credential):
    """The credential of a daemon. Two may overlap while one replaces the other."""

    # How long a replaced one stays valid at most.
    OVERLAP: ClassVar = timedelta(hours=24)

    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="credentials")
    # The daemon that showed it first. Another daemon that shows it has a copy.
    instance_id = models.CharField(max_length=64, blank=True, editable=False)

    def __str__(self) -> str:
        return self.key_id


class EnrolmentCode(Credential):
    """A code with which one host becomes the controller of this name, once.

    With ``is_replacement`` the controller exists, and its credentials end. A code without a name is
    a key: it serves ``hosts`` hosts, each under its own name, and has served ``enrolled``.
    """

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="enrolment_codes")
    controller_name = models.SlugField(max_length=64, blank=True)
    hosts = models.PositiveIntegerField(default=1, db_default=1)
    enrolled = models.PositiveIntegerField(default=0, db_default=0)
    labels = models.CharField(
        max_length=512, blank=True, default="", db_default="", validators=[validate_labels]
    )
    is_replacement = models.BooleanField(default=False)
    created_by = models.CharField(max_length=128)
    used_at = models.DateTimeField(null=True, blank=True)
    used_from = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"{self.controller_name or f'{self.hosts} hosts'} ({self.key_id})"


class RateMeter(models.Model):
    """The use of a rate: used up until ``free_at`` (seconds since 1970), and free after that."""

    key = models.CharField(max_length=200, primary_key=True)
    free_at = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.key
