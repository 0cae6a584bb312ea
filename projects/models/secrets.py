"""Values that callers may have typed and never see."""

import uuid

from django.core.validators import validate_slug
from django.db import models
from django.utils import timezone

from projects.models.accounts import Controller, Project


class Secret(models.Model):
    """A value that is typed by its name. ``sealed`` is encrypted together with the row's id, so that it opens in this row only.

    It may be typed on ``controllers``, or on every one of the project with ``any_controller``; into sessions of the programs
    ``allowed_commands``, or of any if the list is empty.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="secrets")
    name = models.CharField(max_length=64, validators=[validate_slug])
    sealed = models.BinaryField(editable=False)
    any_controller = models.BooleanField(default=False, help_text="May be typed on every controller of the project.")
    controllers = models.ManyToManyField(Controller, blank=True, related_name="secrets")
    allowed_commands = models.JSONField(
        default=list, blank=True, help_text='Programs of sessions it may be typed into, such as ["sudo"]; empty: any.'
    )
    may_echo = models.BooleanField(default=False, help_text="May be typed although the terminal asks for no secret, and may show it.")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        ordering = ("project", "name")
        constraints = (models.UniqueConstraint(fields=("project", "name"), name="one_secret_per_name"),)

    def __str__(self) -> str:
        return self.name
