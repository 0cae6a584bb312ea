"""The Django app of projects, hosts and sessions; it registers the system checks at its start."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    """Registers the system checks when the server starts."""

    name = "projects"
    verbose_name = "Holdline"

    def ready(self) -> None:
        """Import the checks late: they need the settings, which are not read before."""
        from projects.checks import begin

        begin()
