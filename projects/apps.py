"""The domain app."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    """Registers the system checks."""

    name = "projects"
    verbose_name = "Holdline"

    def ready(self) -> None:
        """Importing the module registers its checks."""
        from projects import checks  # noqa: F401
