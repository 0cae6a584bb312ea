"""The Django app of the console."""

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ConsoleConfig(AppConfig):
    """Pages for people. Most rows that they show belong to ``projects``."""

    name = "console"
    verbose_name = "Console"

    def ready(self) -> None:
        """Makes the groups after a migration, and has the admin ask for the second factor, too."""
        from django.contrib import admin

        from console.groups import ensure_groups
        from console.parts.access import is_staff

        post_migrate.connect(ensure_groups, sender=self)
        admin.site.has_permission = is_staff  # type: ignore[method-assign]
