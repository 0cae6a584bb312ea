"""Database access for the event loop, in threads that each have their own connection.

Django's ``sync_to_async`` shares one thread per process between all consumers, so one slow query
would stall them all. A hop takes a thread for one short transaction, never for a wait. SQLite has
one writer at a time and lets the others sleep for milliseconds before they look again; one thread
that writes one transaction after the other never waits, and commits together what waits for it
(``in_shared_transaction``). Long reads have threads of their own (``at_length``).

A broken connection (``storage.faults``) is replaced together with those of all threads: the
connections of one process to SQLite share what they found when the first of them was opened.
"""

import asyncio
import atexit
import logging
import random
import select
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, ParamSpec, TypeVar

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    OperationalError,
    connection,
    connections,
)

from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.storage import clock, shared
from projects.storage import faults as storage_faults
from projects.storage.columns import is_sqlite
from projects.storage.threads import DatabaseThread, DatabaseThreads, NotBegunError

P = ParamSpec("P")
T = TypeVar("T")

logger = logging.getLogger(__name__)

ATTEMPTS = 4
FIRST_BACKOFF_SECONDS = 0.02
REPLACE_SECONDS: Final = 1.0
"""While the storage stays broken, connections are replaced no more often than this."""

# A prepared statement keeps its plan. A plan made while a table was small reads all of the table,
# until PostgreSQL notices that it grew. Everything a short transaction looks for has an index.
_PREFER_INDEXES = "SET enable_seqscan = off"

LONG_THREADS = 2
"""Threads for long reads."""
OPEN_THREADS = 2
"""Threads for reads whose callers choose the cost, and can keep all of these threads busy."""
UPKEEP_THREADS: Final = 1
"""Threads for the work that no caller asks for: ends, retention, letters."""


@dataclass
class _Pools:
    """The threads of this process. They are made when they are first needed."""

    short: DatabaseThreads | None = None
    long: DatabaseThreads | None = None
    open: DatabaseThreads | None = None
    upkeep: DatabaseThreads | None = None
    replaced_at: float = -REPLACE_SECONDS
    ending: list[DatabaseThread] = field(default_factory=list)
    """Threads that were retired, and still have connections."""

    def all(self) -> list[DatabaseThreads]:
        """Return the pools that were made, and not replaced since."""
        pools = (self.short, self.long, self.open, self.upkeep)
        return [pool for pool in pools if pool is not None]

    def take(self) -> list[DatabaseThreads]:
        """Return them for their end; the next hop makes new ones."""
        taken = self.all()
        self.short = self.long = self.open = self.upkeep = None
        return taken


_pools = _Pools()
_opened = threading.local()


class _NotConnectedError(Exception):
    """No connection could be made, so nothing was begun."""


class _CutOffError(Exception):
    """The connection was given up in the middle of a transaction, whose fate is unknown."""


class NotLetThrough(BaseException):
    """The check before a hop refused it.

    No handler of errors between the hop and the owner of the check may take it for a failure.
    """


_check: ContextVar[Callable[[], None]] = ContextVar("_check", default=lambda: None)


@contextmanager
def checked_by(check: Callable[[], None]) -> Iterator[None]:
    """Every hop of the block calls ``check`` first, in its own thread and on its connection.

    A check that raises NotLetThrough stops the hop: its function does not begin. A check costs no
    hop of its own. It is called before each attempt of each hop, so it has to remember its answer.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


class Hop:
    """A way from the event loop into some of the database threads, and back with the result."""

    def __init__(
        self,
        threads_of: Callable[[], DatabaseThreads],
        *,
        is_short: bool = False,
        may_share: bool = False,
    ) -> None:
        self._threads_of = threads_of
        self._is_short = is_short
        self._may_share = may_share

    async def __call__(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs ``function(*args)`` in a database thread.

        It opens no transaction: outside a ``one_transaction`` block of ``function`` each statement
        is committed by itself. If the last thing that failed was surely rolled back, ``function``
        runs again, up to ATTEMPTS times, so what it committed before has to bear a repeat. If its
        fate is unknown, because its connection died, ``function`` is not repeated.

        Raises:
            StorageUnavailable: if the database does not take the transaction.

        """
        # Messages are made in the threads, too, and depend on the caller of this context.
        context, work = copy_context(), partial(_run, self._is_short, function, *args, **kwargs)
        for attempt in range(ATTEMPTS):
            threads = self._threads_of()
            try:
                result = await threads.submit(partial(context.run, work), may_share=self._may_share)
            except NotBegunError as error:
                raise StorageUnavailable from error
            except _CutOffError as error:
                raise StorageUnavailable from error.__cause__
            except _NotConnectedError as error:
                cause: BaseException = error.__cause__ or error
            except (DatabaseError, InterfaceError) as error:
                if not storage_faults.is_fault(error):
                    raise
                if storage_faults.is_broken(error):
                    _replace_connections(threads)
                if not storage_faults.is_rolled_back(error):
                    raise StorageUnavailable from error
                cause = error
            else:
                return result
            if attempt + 1 < ATTEMPTS:
                jitter = random.SystemRandom().uniform(0.5, 1.5)
                await asyncio.sleep(FIRST_BACKOFF_SECONDS * 2**attempt * jitter)
        raise StorageUnavailable from cause


def _replace_connections(seen_in: DatabaseThreads) -> None:
    """Ends all threads with their connections once their work is done, and makes new ones.

    Nothing happens if the threads of ``seen_in`` are being replaced already.
    """
    if seen_in not in _pools.all() or time.monotonic() - _pools.replaced_at < REPLACE_SECONDS:
        return
    _pools.replaced_at = time.monotonic()
    logger.error("the database's connections are broken and are opened again")
    retired = [worker for threads in _pools.take() for worker in threads.retire()]
    # A connection to SQLite shares what the process found when it opened the first connection, so
    # the new threads wait for the end of the last old connection.
    if connection.vendor == "sqlite":
        alive = [worker for worker in _pools.ending if worker.is_alive()]
        _pools.ending = alive + retired


def close_threads() -> None:
    """Ends the threads and their connections; the next hop makes new ones."""
    for threads in _pools.take():
        threads.close()


# A process that exits cuts its threads off wherever they are. Transactions that have begun must
# finish first.
atexit.register(close_threads)


def _short_threads() -> DatabaseThreads:
    if _pools.short is None:
        _pools.short = DatabaseThreads(
            conf.database_threads,
            name="database",
            on_end=_close_connection,
            after=_pools.ending,
            # Transactions of PostgreSQL run side by side, and would wait for each other's locks.
            run_shared=_run_shared if connection.vendor == "sqlite" else None,
        )
    return _pools.short


def _long_threads() -> DatabaseThreads:
    if _pools.long is None:
        _pools.long = _threads_of_reads(LONG_THREADS, "database-long")
    return _pools.long


def _open_threads() -> DatabaseThreads:
    if _pools.open is None:
        _pools.open = _threads_of_reads(OPEN_THREADS, "database-open")
    return _pools.open


def _upkeep_threads() -> DatabaseThreads:
    if _pools.upkeep is None:
        _pools.upkeep = _threads_of_reads(UPKEEP_THREADS, "database-upkeep")
    return _pools.upkeep


def _threads_of_reads(count: int, name: str) -> DatabaseThreads:
    return DatabaseThreads(count, name=name, on_end=_close_connection, after=_pools.ending)


in_database: Final = Hop(_short_threads, is_short=True)
"""For one short transaction."""
in_shared_transaction: Final = Hop(_short_threads, is_short=True, may_share=True)
"""For a short transaction that may be part of one with others.

The result comes after the commit. The function writes in ``one_transaction`` blocks, or at most one
row. It raises no error after it has written something that has to stay.
"""
at_length: Final = Hop(_long_threads)
"""For a long read: a digest, a list, a page of output.

It keeps no transaction waiting. It may write at most one row at its end, because it is a second
writer of SQLite then.
"""
at_any_length: Final = Hop(_open_threads)
"""For a read of which the caller chooses the cost: an expression, a rendered screen.

Such reads hold up only each other.
"""
in_upkeep: Final = Hop(_upkeep_threads)
"""For a long read of the server's upkeep, in a thread that no caller gets."""


def _close_connection() -> None:
    # Looked up here: each thread has a connection of its own.
    connection.close()


def _run_shared(parts: Sequence[Callable[[], object]]) -> Sequence[shared.PartOutcome] | None:
    try:
        _ensure_usable(is_short=True)
    except (DatabaseError, InterfaceError, OSError, MemoryError):
        # Each part is run by itself, and meets its own error.
        return None
    outcomes = shared.run_shared(parts)
    error = outcomes[-1].error if outcomes else None
    if isinstance(error, DatabaseError | InterfaceError):
        _drop_if_broken(error)
    return outcomes


def _run(
    is_short: bool,
    function: Callable[P, T],
    /,
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    if shared.is_shared():
        _check.get()()
        return function(*args, **kwargs)
    try:
        _ensure_usable(is_short=is_short)
    except Exception as error:
        is_shortage = storage_faults.is_shortage(error)
        if not is_shortage and not isinstance(error, OperationalError | InterfaceError):
            raise
        raise _NotConnectedError from error
    try:
        _check.get()()
        return function(*args, **kwargs)
    except Exception as error:
        if storage_faults.is_shortage(error) and connection.vendor == "postgresql":
            connection.close()
            raise _CutOffError from error
        if isinstance(error, DatabaseError | InterfaceError):
            _drop_if_broken(error)
        raise


def _drop_if_broken(error: DatabaseError | InterfaceError) -> None:
    if storage_faults.is_broken(error):
        connection.close()
    elif storage_faults.is_fault(error):
        connection.close_if_unusable_or_obsolete()


def _ensure_usable(*, is_short: bool) -> None:
    try:
        _make_usable(is_short=is_short)
    except BaseException:
        # Half of a connection may be there, such as one whose settings were not sent.
        connection.close()
        raise


def _make_usable(*, is_short: bool) -> None:
    # Looked up once: Django looks for the connection of the thread each time.
    here: Any = connections[DEFAULT_DB_ALIAS]
    here.close_if_unusable_or_obsolete()
    file = storage_faults.database_file()
    if here.connection is not None and getattr(_opened, "file", file) != file:
        # Another file has the name now. Writes to the old file would be lost.
        here.close()
    if (
        not is_sqlite()
        and here.connection is not None
        and not _has_something_to_read(here.connection)
    ):
        # A server that ends a connection sends something on it. Silence saves the statement that
        # Django would send to check the connection.
        here.health_check_done = True
    is_new = here.connection is None
    here.ensure_connection()
    if is_new:
        _opened.file = file
    if is_new and not is_sqlite():
        clock.measure()
        if is_short:
            with here.cursor() as cursor:
                cursor.execute(_PREFER_INDEXES)
    # The thread keeps its connection. Django would close it by age, as it does for requests.
    here.close_at = None


def _has_something_to_read(raw: Any) -> bool:
    if raw.closed:
        return True
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))
