"""``manage.py migrate``: Django's own, which tries again while running servers are in its way.

A migration needs the locks of all tables (``projects.storage.postgresql.schema``), and a
transaction of a server may hold one for longer than ``lock_timeout``. PostgreSQL then rolls the
migration back as a whole.
"""

from typing import Any, Final

from django.core.management.base import CommandError
from django.core.management.commands.migrate import Command as DjangoCommand
from django.db import OperationalError, connection
from django.db.migrations.recorder import MigrationRecorder

from projects.storage import faults
from projects.storage.sqlite.base import making_database

ATTEMPTS: Final = 10
"""Each of them waits for its lock, 5 s unless DATABASE_URL says otherwise. A migration that is done
gives the next one as many."""


class Command(DjangoCommand):
    help = f"{DjangoCommand.help} Tries again while running servers hold locks that it needs."

    def execute(self, *arguments: Any, **options: Any) -> str | None:
        """Check and migrate the database, which is made if there is none."""
        with making_database():
            return super().execute(*arguments, **options)

    def handle(self, *arguments: Any, **options: Any) -> None:
        is_within = connection.in_atomic_block
        attempt, applied = 0, 0
        while True:
            try:
                super().handle(*arguments, **options)
            except OperationalError as error:
                # A transaction around the command is lost with it.
                if is_within or not faults.is_lock_lost(error):
                    raise
                # Django does not leave the transaction of a migration whose first statements, its
                # locks, or whose last ones failed. A new connection has none.
                connection.close()
                connection.connect()
                before, applied = applied, _number_applied()
                attempt = attempt + 1 if applied == before else 1
                self._tell(error, attempt)
            else:
                return

    def _tell(self, error: OperationalError, attempt: int) -> None:
        why = str(error).partition("\n")[0]
        if attempt == ATTEMPTS:
            raise CommandError(
                f"not migrated: running servers held locks in each of {ATTEMPTS} attempts ({why}). "
                "The last migration that is named above left nothing, those before it are whole. "
                "Run it again when the servers have less to do, or stop them for as long"
            )
        self.stderr.write(
            f"a running server is in the way ({why}); trying again, {attempt + 1} of {ATTEMPTS}"
        )


def _number_applied() -> int:
    return len(MigrationRecorder(connection).applied_migrations())
