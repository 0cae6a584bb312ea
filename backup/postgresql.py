"""PostgreSQL: copied by pg_dump in an exported snapshot, put back in one transaction of psql."""

import os
import subprocess
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import IO, Any, Final, cast

from django.db import DatabaseError, connection, transaction

from backup.errors import SERVED, BackupError
from projects.storage.unfinished import TABLE

# The names of libpq for what Django's connection was told.
_VARIABLES: Final = {
    "dbname": "PGDATABASE",
    "user": "PGUSER",
    "password": "PGPASSWORD",
    "host": "PGHOST",
    "port": "PGPORT",
    "sslmode": "PGSSLMODE",
    "sslrootcert": "PGSSLROOTCERT",
    "sslcert": "PGSSLCERT",
    "sslkey": "PGSSLKEY",
    "channel_binding": "PGCHANNELBINDING",
    "gssencmode": "PGGSSENCMODE",
    "connect_timeout": "PGCONNECT_TIMEOUT",
}
# A role that is no superuser does not see the kind of the connections of other roles.
_USERS: Final = """
SELECT COUNT(*) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND usesysid IS NOT NULL
    AND COALESCE(backend_type, 'client backend') = 'client backend'
"""
# What belongs to an extension is not dumped, and goes and comes with its extension alone.
_TABLES: Final = """
SELECT relname FROM pg_class c
WHERE relkind IN ('r', 'p')
    AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
    AND NOT EXISTS (SELECT FROM pg_depend
        WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
ORDER BY 1
"""
# Tables of a release that is newer than the backup go, too.
_EMPTY: Final = """
DO $empty$ DECLARE it record; BEGIN
    FOR it IN SELECT relname FROM pg_class c WHERE relkind IN ('r', 'p')
        AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
        AND NOT EXISTS (SELECT FROM pg_depend
            WHERE classid = 'pg_class'::regclass AND objid = c.oid AND deptype = 'e')
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS %I CASCADE', it.relname);
    END LOOP;
    FOR it IN SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema())
            AND p.proowner = (SELECT oid FROM pg_roles WHERE rolname = current_user)
            AND NOT EXISTS (SELECT FROM pg_depend
                WHERE classid = 'pg_proc'::regclass AND objid = p.oid AND deptype = 'e')
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', it.name);
    END LOOP;
END $empty$;
"""
# A server that has come meanwhile has passed its checks, and knows what was there before.
END: Final = f"""
DO $end$ BEGIN
    PERFORM pg_stat_clear_snapshot();
    IF ({_USERS}) > 0 THEN RAISE EXCEPTION '{SERVED}'; END IF;
END $end$;
COMMIT;
"""
"""How a restore ends."""
_BARE: Final = ("--no-owner", "--no-privileges")
# Other schemas of the database may hold the tables of other applications.
_BEGIN: Final = (
    f"BEGIN;\nSET LOCAL search_path = {{schema}};\n{_EMPTY}\nCREATE TABLE {TABLE} (since text);\n"
)


class PostgresqlStorage:
    """The database that DATABASE_URL names. Its programs have to be installed beside the server."""

    FILE = "database.dump"

    def copy_out(self, file: Path) -> dict[str, int]:
        """Dump what one snapshot sees, and count the rows in the same snapshot."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            # This transaction waits for the dump, however long that takes.
            cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
            cursor.execute("SET LOCAL statement_timeout = 0")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()
            schema = f"--schema={_quoted(_schema())}"
            _run("pg_dump", "--format=custom", f"--snapshot={snapshot}", schema, f"--file={file}")
            cursor.execute(_TABLES)
            tables = [name for (name,) in cursor.fetchall()]
            rows = {name: _count(cursor, name) for name in tables}
        # Reads all of it: a dump that was cut off, or damaged, cannot be written out.
        _run("pg_restore", f"--file={os.devnull}", str(file))
        return rows

    def copy_in(self, file: Path, finish: Callable[[], None]) -> None:
        """Replace everything in one transaction, which also forbids servers to start."""
        schema = _schema()
        connection.close()
        _require_of_schema(file, schema)
        _load(file, schema)
        try:
            finish()
        except DatabaseError as error:
            raise BackupError(
                f"the restore was cut short: {error}. No server starts on the database until "
                "restore has been run again"
            ) from None

    def kept_from_servers(self) -> AbstractContextManager[None]:
        """Nothing is held: the transaction that replaces the database looks for servers."""
        return nullcontext()

    def users(self) -> int:
        """The number of other clients that are connected to the database."""
        with connection.cursor() as cursor:
            cursor.execute(_USERS)
            return int(cursor.fetchone()[0])


def _schema() -> str:
    """The schema with this server's tables; its URL or its role may choose another than public."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        name = cursor.fetchone()[0]
    if name is None:
        raise BackupError(
            "the database has no schema for this server: make the first one of its search_path"
        )
    return str(name)


def _quoted(schema: str) -> str:
    return connection.ops.quote_name(schema.replace('"', '""'))


def _require_of_schema(file: Path, schema: str) -> None:
    """Raise BackupError unless the dump has tables of the schema that they will be put into."""
    with tempfile.TemporaryFile() as listed:
        _run("pg_restore", "--list", str(file), out=listed)
        listed.seek(0)
        lines = listed.read().decode().splitlines()
    # Such as "218; 1259 16402 TABLE public projects_project owner".
    if any(f" TABLE {schema} " in line for line in lines):
        return
    words = [line.split(" ") for line in lines if " TABLE " in line and " TABLE DATA " not in line]
    found = " and ".join(sorted({each[4] for each in words if len(each) > 4}))
    raise BackupError(
        f"the backup is of {found or 'no schema'}, and the tables of this server are in "
        f"the schema {schema}. Choose the schema of the backup in DATABASE_URL, or as the "
        "search_path of the role"
    )


def _load(file: Path, schema: str) -> None:
    """Run the dump as one transaction. It is committed only if all of it was written."""
    with tempfile.TemporaryFile() as said:
        psql = _start("psql", "--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", said=said)
        try:
            # psql has met an error if it reads no more, and tells it below.
            with suppress(BrokenPipeError), cast("IO[bytes]", psql.stdin) as script:
                script.write(_BEGIN.format(schema=_quoted(schema)).encode())
                script.flush()
                _run("pg_restore", *_BARE, f"--schema={schema}", "--file=-", str(file), out=script)
                script.write(END.encode())
        finally:
            psql.wait()
            # Told first: of this error pg_restore only says that nobody reads any more.
            if psql.returncode:
                reason = f"the database cannot be put back: {_reason(said)}"
                raise BackupError(reason) from None


def _run(program: str, *arguments: str, out: IO[bytes] | int = subprocess.DEVNULL) -> None:
    with tempfile.TemporaryFile() as said:
        if _start(program, *arguments, out=out, said=said).wait():
            raise BackupError(f"{program} failed: {_reason(said)}")


def _start(
    program: str, *arguments: str, said: IO[bytes], out: IO[bytes] | int | None = None
) -> "subprocess.Popen[bytes]":
    """Start a program of PostgreSQL on this server's database. Without ``out`` it has a stdin."""
    known = connection.get_connection_params()
    told = {variable: str(known[name]) for name, variable in _VARIABLES.items() if known.get(name)}
    try:
        return subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.PIPE if out is None else subprocess.DEVNULL,
            stdout=subprocess.DEVNULL if out is None else out,
            stderr=said,
            env={**os.environ, **told},
        )
    except FileNotFoundError:
        raise BackupError(
            f"{program} is not installed. Install the client programs of the database's own "
            "version: apt-get install postgresql-client"
        ) from None


def _count(cursor: Any, table: str) -> int:
    cursor.execute(f"SELECT COUNT(*) FROM {connection.ops.quote_name(table)}")  # noqa: S608 # nosec B608
    return int(cursor.fetchone()[0])


def _reason(said: IO[bytes]) -> str:
    said.seek(0)
    lines = [line for line in said.read().decode(errors="replace").splitlines() if line.strip()]
    errors = [line for line in lines if "error" in line.lower()]
    return (errors or lines or ["it said nothing"])[0].strip()
