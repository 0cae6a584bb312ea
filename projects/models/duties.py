"""Rows about all server processes: leader leases, and restores of the database."""

from django.db import models
from django.utils import timezone


class Duty(models.Model):
    """A leader lease and its holder.

    ``until`` is a time of the database's clock, because the clocks of the processes may differ.
    """

    name = models.CharField(max_length=32, primary_key=True)
    holder = models.CharField(max_length=32)
    until = models.DateTimeField()

    class Meta:
        verbose_name_plural = "duties"

    def __str__(self) -> str:
        return self.name


class Restore(models.Model):
    """A database that was put back from a backup.

    Until ``confirmed_at``, tokens of the backup are refused and nobody logs in.
    """

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(default=timezone.now)
    backup_made_at = models.DateTimeField()
    backup_release = models.CharField(max_length=32)
    actor = models.CharField(max_length=128)
    confirmed_at = models.DateTimeField(null=True)
    confirmed_by = models.CharField(max_length=128, blank=True)

    def __str__(self) -> str:
        return f"{self.backup_made_at:%Y-%m-%dT%H:%M:%SZ}"
