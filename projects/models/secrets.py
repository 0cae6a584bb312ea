"""Secrets: values that callers can have typed and never see."""

import uuid

from django.core.validators import validate_slug
from django.db import models
from django.utils import timezone

from projects.models.accounts import Controller, Project
from projects.models.sealed_field import SealedField


class Secret(models.Model):
    """A value that callers have typed by its name.

    ``sealed`` is encrypted together with the row's id, so that it opens in this row only. The value
    may be typed on ``controllers``, or with ``any_controller`` on every controller of the project.
    Only the programs, or whole command lines, of ``allowed_commands`` may read it; any program if
    it is empty.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=64, validators=[validate_slug])
    sealed = SealedField(editable=False)
    any_controller = models.BooleanField(
        default=False, help_text="May be typed on every controller of the project."
    )
    controllers = models.ManyToManyField(Controller, blank=True, related_name="secrets")
    allowed_commands = models.JSONField(
        default=list,
        blank=True,
        help_text=(
            'Programs or whole command lines that may read it, such as ["sudo", "ssh -F none '
            'web1"]; empty: any.'
        ),
    )
    may_echo = models.BooleanField(
        default=False, help_text="These programs may read it where it is shown, too."
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("project", "name")
        constraints = (
            models.UniqueConstraint(fields=("project", "name"), name="one_secret_per_name"),
        )

    def __str__(self) -> str:
        return self.name
