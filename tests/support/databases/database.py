"""A stack's database, read from outside: the rows that the servers have committed."""

import sqlite3
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.types.string import TextLoader

from tests.support.waiting import await_until, wait_until

_AWAY_SECONDS = 60.0


class Database:
    """Queries to the SQLite file of a stack's servers while they work."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query; ``?`` stands for a parameter."""
        with closing(
            sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=60)
        ) as connection:
            return connection.execute(query, parameters).fetchall()

    def execute(self, statement: str, *parameters: object) -> None:
        """Change the database without the servers' knowledge."""
        with closing(sqlite3.connect(self.path, timeout=60)) as connection, connection:
            connection.execute(statement, parameters)

    def close(self) -> None:
        """Close the connection, if one is kept."""

    def controller_epoch(self, name: str) -> int:
        """The number of HELLOs of this controller that were accepted."""
        return int(self.rows("SELECT epoch FROM projects_controller WHERE name = ?", name)[0][0])

    def session(self, session_id: str, *columns: str) -> tuple[Any, ...]:
        """Columns of one session's row."""
        query = f"SELECT {', '.join(columns)} FROM projects_commandsession WHERE id = ?"
        return self.rows(query, session_id.replace("-", ""))[0]

    def state(self, session_id: str) -> str:
        return str(self.session(session_id, "state")[0])

    async def await_verified(self, session_id: str, seconds: float = 90.0) -> None:
        """Wait until the server has compared an ended session's output with the host's digest.

        Fails unless the two agree.
        """
        await await_until(
            lambda: self.session(session_id, "stdout_sha256_ok") != (None,),
            seconds,
            "the digest to be compared",
        )
        assert self.session(session_id, "stdout_sha256_ok") == (1,)

    def extents(self, session_id: str) -> list[tuple[int, int, bytes | None]]:
        """Chunks and gaps of stdout as ``(from, to, data or None for a gap)``, by offset."""
        key = session_id.replace("-", "")
        of_stdout = "WHERE session_id = ? AND stream = 'stdout'"
        chunks = self.rows(
            f'SELECT "offset", "offset" + size, data FROM projects_outputchunk {of_stdout}', key
        )
        gaps = self.rows(f"SELECT from_offset, to_offset FROM projects_outputgap {of_stdout}", key)
        return sorted(
            [*chunks, *((start, end, None) for start, end in gaps)], key=lambda extent: extent[0]
        )

    def transcript(self, session_id: str) -> bytes:
        """Every byte of stdout; fails on a gap, a hole or an overlap."""
        expected, parts = 0, []
        for start, end, data in self.extents(session_id):
            assert data is not None, f"gap [{start}, {end})"
            assert start == expected, f"expected offset {expected}, got {start}"
            assert end - start == len(data)
            parts.append(data)
            expected = end
        return b"".join(parts)

    def accounted_bytes(self, session_id: str) -> tuple[int, int]:
        """The numbers of bytes that were delivered and that lie in gaps.

        Fails unless chunks and gaps together cover the stream from 0 without a hole or an overlap.
        """
        expected = delivered = missing = 0
        for start, end, data in self.extents(session_id):
            assert start == expected, f"expected offset {expected}, got {start}"
            delivered, missing = (
                (delivered, missing + end - start)
                if data is None
                else (delivered + len(data), missing)
            )
            expected = end
        return delivered, missing


class PostgresDatabase(Database):
    """The same queries for servers on PostgreSQL. A query waits while PostgreSQL is away.

    Values have the forms that SQLite gives: ids are 32 hex digits, JSON is text.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = threading.Lock()

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query; ``?`` stands for a parameter."""
        with self._lock:
            return [
                tuple(map(_as_in_sqlite, row))
                for row in self._executed(query, parameters).fetchall()
            ]

    def execute(self, statement: str, *parameters: object) -> None:
        """Change the database without the servers' knowledge."""
        with self._lock:
            self._executed(statement, parameters)

    def close(self) -> None:
        """Close the connection, if one is kept."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _executed(
        self, query: str, parameters: tuple[object, ...]
    ) -> psycopg.Cursor[tuple[Any, ...]]:
        statement = query.replace("%", "%%").replace("?", "%s").encode()

        def attempt() -> psycopg.Cursor[tuple[Any, ...]] | None:
            with suppress(psycopg.OperationalError):
                if self._connection is None or self._connection.closed:
                    self._connection = psycopg.connect(
                        self._url, autocommit=True, connect_timeout=20
                    )
                    self._connection.adapters.register_loader("jsonb", TextLoader)
                return self._connection.execute(statement, parameters)
            self._connection = None
            return None

        return wait_until(attempt, _AWAY_SECONDS, "the database to answer")


def _as_in_sqlite(value: Any) -> Any:
    return value.hex if isinstance(value, UUID) else value
