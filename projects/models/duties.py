"""Leader leases: work that one process does for all of them."""

from django.db import models


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
