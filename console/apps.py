"""The Django app of the console."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """Pages for operators. The rows belong to ``projects``."""

    name = "console"
    verbose_name = "Console"
