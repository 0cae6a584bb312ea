"""Django's PostgreSQL, with a pipeline for hand-written statements beside the ORM's.

Django finds this class by the name of its package and of this module.
"""

from collections.abc import Sequence
from typing import Any

from django.db.backends.postgresql import base
from psycopg.pq import TransactionStatus

from projects.storage.postgresql.pipeline import Answer, Pipeline
from projects.storage.postgresql.schema import SchemaEditor


class DatabaseWrapper(base.DatabaseWrapper):
    """A connection whose hand-written statements are sent together.

    In a transaction they wait until an answer is asked for, until the ORM wants the connection, or
    until the commit, which goes with them. BEGIN waits like any other statement.
    """

    SchemaEditorClass = SchemaEditor
    _pipeline: Pipeline | None = None

    def execute_soon(self, statement: str, parameters: Sequence[Any]) -> Answer:
        """Execute a hand-written statement; in a transaction once its answer matters.

        Errors of a statement that waits are raised when the statements are sent.
        """
        pipeline = self._opened_pipeline()
        answer = pipeline.add(statement, parameters)
        if not self.in_atomic_block:
            pipeline.send()
        return answer

    def _opened_pipeline(self) -> Pipeline:
        if self._pipeline is None:
            self._pipeline = Pipeline(
                self.connection,
                is_preparing=self.connection.prepare_threshold is not None,
                errors=self.wrap_database_errors,
            )
        return self._pipeline

    # ---- what Django asks of a backend -----------------------------------------------------------

    def connect(self) -> None:
        """Open a connection. What waited for the one before is gone with it."""
        self._pipeline = None
        super().connect()

    def create_cursor(self, name: str | None = None) -> Any:
        """Make a cursor for a statement that is sent by itself, after all that wait."""
        if self._pipeline is not None:
            self._pipeline.send()
        return super().create_cursor(name)

    def _start_transaction_under_autocommit(self) -> None:
        self._opened_pipeline().add("BEGIN")

    def _set_autocommit(self, autocommit: bool) -> None:
        if self.connection.autocommit != autocommit:
            super()._set_autocommit(autocommit)  # type: ignore[misc] # not in the stubs

    def _commit(self) -> None:
        if self.connection is not None:
            self._end("COMMIT")

    def _rollback(self) -> None:
        if self.connection is not None:
            self._opened_pipeline().forget()
            self._end("ROLLBACK")

    def _end(self, statement: str) -> None:
        pipeline = self._opened_pipeline()
        if (
            pipeline.is_waiting
            or self.connection.pgconn.transaction_status != TransactionStatus.IDLE
        ):
            pipeline.add(statement)
            pipeline.send()

    def _savepoint_rollback(self, sid: str) -> None:
        # psycopg gives up all prepared statements, ours as well, when it sees such a statement.
        pipeline = self._opened_pipeline()
        pipeline.forget()
        pipeline.add(self.ops.savepoint_rollback_sql(sid))
        pipeline.send()
