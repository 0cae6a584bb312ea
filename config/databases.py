"""Where the truth is kept: SQLite next to the server by default, PostgreSQL when DATABASE_URL says so."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from config.env import Environment

# WAL lets readers go on while one writer commits; NORMAL makes a commit durable against the death of the process, and
# against power loss up to the last checkpoint. The rest keeps the file and its log small. A checkpoint takes tens of
# milliseconds: ``projects.checkpoints`` makes them beside the calls, a commit only when the log has reached 64 MiB in spite of that.
SQLITE_PRAGMAS = (
    "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA temp_store=MEMORY; PRAGMA cache_size=-16384;"
    " PRAGMA journal_size_limit=67108864; PRAGMA wal_autocheckpoint=16000;"
)


# A statement that hangs is given up, and so is a transaction that nobody goes on with: a process that stands still must not stop the
# others. A lock that is not had in time is tried for again. The rest finds out about a database that went without a word.
POSTGRESQL_OPTIONS: dict[str, Any] = {
    "connect_timeout": 5,
    "options": "-c statement_timeout=30s -c lock_timeout=5s -c idle_in_transaction_session_timeout=30s -c jit=off",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    # Parsing and planning are half of what a turn costs PostgreSQL: a connection keeps the plans of what it has been asked this often.
    "server_side_binding": True,
    "prepare_threshold": 3,
}


def database_settings(environment: Environment, data_dir: Path) -> dict[str, Any]:
    """Django's DATABASES["default"]."""
    url = environment.text("DATABASE_URL")
    if not url:
        return sqlite(data_dir / "db.sqlite3")
    parts = urlsplit(url)
    if parts.scheme in {"postgres", "postgresql"}:
        return _postgresql(environment, url)
    if parts.scheme == "sqlite":
        return sqlite(Path(unquote(parts.path)))
    environment.problem("DATABASE_URL must start with postgres:// or sqlite://")
    return sqlite(data_dir / "db.sqlite3")


def sqlite(path: Path) -> dict[str, Any]:
    """A file in WAL mode. IMMEDIATE: a transaction that reads before it writes would otherwise fail when another one wrote meanwhile."""
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": path,
        "CONN_MAX_AGE": None,
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE", "init_command": SQLITE_PRAGMAS},
    }


def _postgresql(environment: Environment, url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    options = {**POSTGRESQL_OPTIONS, **dict(parse_qsl(parts.query))}
    # 0 prepares nothing, for poolers that do not know of prepared statements.
    threshold = str(options["prepare_threshold"])
    if not threshold.isdecimal():
        environment.problem("prepare_threshold in DATABASE_URL must be a whole number")
        threshold = "0"
    options["prepare_threshold"] = int(threshold) or None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        # Each request of Django's has a thread of its own: a connection that outlived it would never be used again. The threads of
        # ``projects.database`` keep theirs; they are the pool.
        "CONN_MAX_AGE": 0,
        # Without it the first query after a restart of the database fails.
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": options,
    }
