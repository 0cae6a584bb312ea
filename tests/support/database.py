"""A stack's database, read from outside with the standard library: what the server really committed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.waiting import await_until


class Database:
    """Read-only questions to the server's SQLite file while the server works."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with closing(sqlite3.connect(f"file:{self.path}?mode=ro", uri=True, timeout=20)) as connection:
            return connection.execute(query, parameters).fetchall()

    def controller_epoch(self, name: str) -> int:
        """How many HELLOs of this controller were accepted."""
        return int(self.rows("SELECT epoch FROM projects_controller WHERE name = ?", name)[0][0])

    def session(self, session_id: str, *columns: str) -> tuple[Any, ...]:
        """Columns of one session's row."""
        query = f"SELECT {', '.join(columns)} FROM projects_commandsession WHERE id = ?"
        return self.rows(query, session_id.replace("-", ""))[0]

    def state(self, session_id: str) -> str:
        """The session's stored state."""
        return str(self.session(session_id, "state")[0])

    async def await_verified(self, session_id: str, seconds: float = 30.0) -> None:
        """Waits until the server has compared the transcript with the host's digest, after the end; fails unless they agree."""
        await await_until(lambda: self.session(session_id, "stdout_sha256_ok") != (None,), seconds, "the digest to be compared")
        assert self.session(session_id, "stdout_sha256_ok") == (1,)

    def extents(self, session_id: str) -> list[tuple[int, int, bytes | None]]:
        """Chunks and gaps of stdout as ``(from, to, data or None for a gap)``, by offset."""
        key = session_id.replace("-", "")
        of_stdout = "WHERE session_id = ? AND stream = 'stdout'"
        chunks = self.rows(f'SELECT "offset", "offset" + size, data FROM projects_outputchunk {of_stdout}', key)
        gaps = self.rows(f"SELECT from_offset, to_offset FROM projects_outputgap {of_stdout}", key)
        return sorted([*chunks, *((start, end, None) for start, end in gaps)], key=lambda extent: extent[0])

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
        """Bytes delivered and bytes in gaps; fails unless together they are one unbroken stretch from 0."""
        expected = delivered = missing = 0
        for start, end, data in self.extents(session_id):
            assert start == expected, f"expected offset {expected}, got {start}"
            delivered, missing = (delivered, missing + end - start) if data is None else (delivered + len(data), missing)
            expected = end
        return delivered, missing
