"""The app that runs language models on the tools."""

from django.apps import AppConfig


class AgentConfig(AppConfig):
    """Rows and pages of runs."""

    name = "agent"
    verbose_name = "Agent runs"
