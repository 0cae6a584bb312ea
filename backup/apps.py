"""The app of backups, which has commands of ``manage.py`` and no rows of its own."""

from django.apps import AppConfig


class BackupConfig(AppConfig):
    """Brings the commands ``backup``, ``restore`` and ``confirm_restore``."""

    name = "backup"
    verbose_name = "Backup"
