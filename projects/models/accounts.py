"""Who belongs to what: projects, controllers, and what each shows to prove itself."""

import uuid

from django.conf import settings
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone

from projects.validators import validate_commands, validate_directories, validate_limits


class Project(models.Model):
    """A tenant: its members, tokens, controllers and limits."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.SlugField(max_length=64, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, blank=True, related_name="projects")
    max_interactive_sessions = models.PositiveSmallIntegerField(default=1)
    # Null: the settings ALLOWED_COMMANDS and ALLOWED_DIRECTORIES.
    allowed_commands = models.JSONField(null=True, blank=True, validators=[validate_commands])
    allowed_directories = models.JSONField(null=True, blank=True, validators=[validate_directories])
    # What a session may use, by the names of ResourceLimits; what is not named is as the settings say, a null lifts that.
    session_limits = models.JSONField(null=True, blank=True, validators=[validate_limits])
    # A program whose output is not stored in this time is terminated by its host. Null: it waits, and its output with it.
    strict_seconds = models.PositiveIntegerField(null=True, blank=True, validators=[MinValueValidator(1)])
    # How long output and whole sessions stay after their end. Null: the settings; 0: for good.
    output_retention_seconds = models.PositiveIntegerField(null=True, blank=True)
    session_retention_seconds = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        permissions = (("view_all_projects", "Sees every project, also as no member of it"),)

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
    # Who made it in the admin: it is good while that user is active and in the project. Null: made by the operator.
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, blank=True, related_name="api_tokens")
    # Null: the settings STARTS_PER_MINUTE and INPUT_BYTES_PER_MINUTE; 0: no limit.
    starts_per_minute = models.PositiveIntegerField(null=True, blank=True)
    input_bytes_per_minute = models.PositiveIntegerField(null=True, blank=True)

    class Meta:
        verbose_name = "API token"
        permissions = (("manage_apitoken", "Can make and revoke API tokens"),)

    def __str__(self) -> str:
        return self.key_id


class Controller(models.Model):
    """An enrolled host. It is online while its lease runs; ``epoch`` fences every connection but the newest."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="controllers")
    name = models.SlugField(max_length=64)
    epoch = models.PositiveBigIntegerField(default=0, editable=False)
    instance_id = models.CharField(max_length=64, blank=True, editable=False)
    boot_id = models.CharField(max_length=64, blank=True, editable=False)
    # A host never boots into a boot it had before: who says so is a copy.
    previous_boot_id = models.CharField(max_length=64, blank=True, editable=False)
    connected_credential_id = models.UUIDField(null=True, editable=False)
    # The last refusal of what looked like a copy of its credential, until somebody has dealt with it.
    alarmed_at = models.DateTimeField(null=True, blank=True, editable=False)
    alarm = models.CharField(max_length=512, blank=True, editable=False)
    lease_expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    client_version = models.CharField(max_length=32, blank=True, editable=False)
    os = models.CharField(max_length=32, blank=True, editable=False)
    platform = models.CharField(max_length=128, blank=True, editable=False)
    hostname = models.CharField(max_length=255, blank=True, editable=False)
    capabilities = models.JSONField(default=list, editable=False)
    last_command_seq = models.PositiveBigIntegerField(default=0, editable=False)
    # Enrolled by a code and not yet let in by an operator. Null: it is.
    awaits_approval_since = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ("name",)
        # A revoked controller keeps its rows and gives its name away: whoever gets the name next is another controller.
        constraints = (
            models.UniqueConstraint(
                fields=("project", "name"), condition=Q(revoked_at__isnull=True), name="active_controller_name_per_project"
            ),
        )
        permissions = (("manage_controller", "Can enrol hosts, and revoke them and their credentials"),)

    def __str__(self) -> str:
        return self.name


class ControllerCredential(Credential):
    """What a daemon shows. Two may overlap while one replaces the other."""

    controller = models.ForeignKey(Controller, on_delete=models.CASCADE, related_name="credentials")
    # The daemon that showed it first. Another one that shows it has a copy.
    instance_id = models.CharField(max_length=64, blank=True, editable=False)

    def __str__(self) -> str:
        return self.key_id


class EnrolmentCode(Credential):
    """Makes a host a controller of this name, once. ``is_replacement``: of one that exists, whose credentials it ends."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="enrolment_codes")
    controller_name = models.SlugField(max_length=64)
    is_replacement = models.BooleanField(default=False)
    created_by = models.CharField(max_length=128)
    used_at = models.DateTimeField(null=True, blank=True)
    used_from = models.CharField(max_length=64, blank=True)

    def __str__(self) -> str:
        return f"{self.controller_name} ({self.key_id})"


class RateMeter(models.Model):
    """How much of a rate somebody has used: it is used up from now until ``free_at`` (seconds since 1970), and free after that."""

    key = models.CharField(max_length=200, primary_key=True)
    free_at = models.FloatField(db_index=True)

    def __str__(self) -> str:
        return self.key
