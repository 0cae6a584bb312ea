"""Django's DATABASES: SQLite in the data directory, or the database that DATABASE_URL names."""

from pathlib import Path
from typing import Any, Final
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

from projects.conf.setting import Environment, Text

DATABASE_URL: Final = Text(
    "DATABASE_URL",
    "",
    "`postgres://user:password@host:5432/name` or `sqlite:///path`. The query "
    "(`?sslmode=verify-full`) goes to libpq. Its `options` replace ours: at most 30 s for a "
    "statement and for an idle transaction, 5 s for a lock. `prepare_threshold=0` turns prepared "
    "statements off, for a pooler that cannot keep them",
    shown="SQLite in the data directory",
)

SQLITE_ENGINE: Final = "projects.storage.sqlite"

# In WAL mode, readers continue while one writer commits. With synchronous=NORMAL, a commit survives
# the death of the process; after a power failure, commits since the last checkpoint may be lost.
# The other pragmas keep the file and its log small. A checkpoint takes tens of milliseconds:
# ``projects.upkeep.checkpoints`` makes them beside the calls. A commit makes one only if the log
# has reached 64 MiB in spite of that.
SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; "
    "PRAGMA cache_size=-16384; PRAGMA journal_size_limit=67108864; PRAGMA wal_autocheckpoint=16000;"
)

# Django runs each request in a new thread: a connection that outlived the request would never be
# used again. To SQLite it would also hand on what its file was like when it was opened. The threads
# of ``projects.storage.access`` keep their connections; they are the pool.
_REQUESTS_KEEP: Final = 0

# PostgreSQL aborts a statement that hangs and a transaction that its client abandoned: one stuck
# process must not stop the others. A transaction that did not get a lock in time is retried. The
# keepalives detect a database that disappeared without closing the connection.
POSTGRESQL_OPTIONS: Final[dict[str, Any]] = {
    "connect_timeout": 5,
    "options": (
        "-c statement_timeout=30s -c lock_timeout=5s -c "
        "idle_in_transaction_session_timeout=30s -c jit=off"
    ),
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # Parsing and planning are half of what a turn costs PostgreSQL. A connection keeps the plan of
    # a statement that it has executed three times.
    "server_side_binding": True,
    "prepare_threshold": 3,
}


def database_settings(environment: Environment, data_dir: Path) -> dict[str, Any]:
    """``DATABASES["default"]``; a wrong DATABASE_URL becomes a problem of the environment."""
    url = environment.read(DATABASE_URL)
    if not url:
        return sqlite(data_dir / "db.sqlite3")
    parts = _parts(url)
    if parts is None:
        environment.problem(
            "DATABASE_URL must be like postgres://user:password@host:5432/name, with %2F, %3F, %23 "
            "and %40 for / ? # and @ in the password"
        )
        return sqlite(data_dir / "db.sqlite3")
    if parts.scheme in {"postgres", "postgresql"}:
        return _postgresql(environment, url)
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)))
    environment.problem("DATABASE_URL must start with postgres:// or sqlite://")
    return sqlite(data_dir / "db.sqlite3")


def _parts(url: str) -> SplitResult | None:
    """The parts of the URL; None if it, or the password in it, cannot be told apart.

    The error of the library repeats a piece of the URL, which may be one of the password.
    """
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    # A password that begins with digits, before one of / ? #, looks like a port.
    is_cut = "@" in parts.path or parts.fragment or "@" in parts.query.partition("=")[0]
    return None if is_cut and parts.scheme != "sqlite" else parts


def sqlite(path: Path) -> dict[str, Any]:
    """A database file in WAL mode, for ``DATABASES["default"]``.

    Transactions begin IMMEDIATE: one that reads before it writes would otherwise fail if another
    transaction wrote in between.
    """
    return {
        "ENGINE": SQLITE_ENGINE,
        "NAME": path,
        "CONN_MAX_AGE": _REQUESTS_KEEP,
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": SQLITE_PRAGMAS},
    }


def _postgresql(environment: Environment, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    options = {**POSTGRESQL_OPTIONS, **dict(parse_qsl(parts.query))}
    # 0 turns prepared statements off, for poolers that cannot keep them.
    threshold = str(options["prepare_threshold"])
    if not threshold.isdecimal():
        environment.problem("prepare_threshold in DATABASE_URL must be a whole number")
        threshold = "0"
    options["prepare_threshold"] = int(threshold) or None
    return {
        "ENGINE": "projects.storage.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_MAX_AGE": _REQUESTS_KEEP,
        # Without it the first query after a restart of the database fails.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }
