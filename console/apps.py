"""The Django app of the console."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConsoleConfig(AppConfig):
    """Pages for people. Most rows that they show belong to ``projects``."""

    name = "console"
    verbose_name = "Console"

    def ready(self) -> None:
        """Has the groups made once the rights exist, which Django makes after a migration."""
        from console.groups import ensure_groups

        post_migrate.connect(ensure_groups, sender=self)
