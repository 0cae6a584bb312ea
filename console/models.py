"""The second factor of a person: the only rows that belong to the console itself."""

from django.conf import settings
from django.db import models

from projects.models.sealed_field import SealedField


class SecondFactor(models.Model):
    """The key that a person's authenticator app shares with the server.

    It counts once ``confirmed_at`` is set. ``last_step`` is the newest period of 30 seconds whose
    code was used: no code is accepted twice. ``recovery`` are SHA-256 digests of unused recovery
    codes.
    """

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        primary_key=True,
        related_name="second_factor",
    )
    sealed_key = SealedField(editable=False)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    last_step = models.PositiveBigIntegerField(default=0)
    recovery = models.JSONField(default=list, editable=False)
    # Wrong codes since the last right one, and the end of the pause that they led to.
    failures = models.PositiveIntegerField(default=0)
    paused_until = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"second factor of {self.user_id}"
