"""The error of backups and restores: a sentence for the administrator at the command line."""

from typing import Final

SERVED: Final = (
    "a server or another program still uses the database. Stop every server process first"
)


class BackupError(Exception):
    """A backup was not made, or a restore was not carried out. Nothing is left half done."""
