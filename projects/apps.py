"""The Django app of projects, hosts and sessions; it registers the system checks at its start."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    """Registers the system checks when the server starts."""

    name = "projects"
    verbose_name = "Holdline"

    def ready(self) -> None:
        """Importing the module registers its checks."""
        from projects import checks  # noqa: F401
        from projects.storage.encoding import refuse_other_encodings

        refuse_other_encodings()
