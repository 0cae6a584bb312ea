"""The error of backups and restores: a sentence for the administrator at the command line."""


class BackupError(Exception):
    """A backup was not made, or a restore was not carried out. Nothing is left half done."""
