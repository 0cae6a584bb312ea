"""The one way from the event loop to the database: threads of our own, each with its own connection.

Django's ``sync_to_async`` shares one thread per process between all consumers, so that one slow query stalls them all. A hop
holds a thread for one short transaction, never for a wait. SQLite has one writer at a time, and lets the others sleep for
milliseconds before they look again; one thread writes one transaction after the other and none of them waits. What reads at length
has threads of its own (``at_length``).
"""

import asyncio
import atexit
import random
import select
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from django.db import InterfaceError, OperationalError, connection

from projects import clock
from projects.conf import conf
from projects.database_threads import DatabaseThreads, NotBegunError
from projects.errors import StorageUnavailable

P = ParamSpec("P")
T = TypeVar("T")

ATTEMPTS = 4
FIRST_BACKOFF_SECONDS = 0.02
# Serialization failure, deadlock, lock not available, and every "insufficient resources".
_ROLLED_BACK_STATES = ("40001", "40P01", "55P03")
_RESOURCE_CLASS = "53"

# A prepared statement keeps its plan. One made while a table was small would read all of it for as long as it takes PostgreSQL to
# notice that it grew; and whatever a short transaction looks for has an index.
_PREFER_INDEXES = "SET enable_seqscan = off"

LONG_THREADS = 2
"""Threads for what reads at length."""

_short: DatabaseThreads | None = None
_long: DatabaseThreads | None = None


class _NotConnectedError(Exception):
    """No connection could be had: nothing was begun."""


async def in_database(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """``function(*args)`` in a database thread. It must be one short transaction, as it is repeated when that was surely rolled back.

    Raises StorageUnavailable when the database does not take it. A transaction whose fate is unknown (the connection died
    under it) is not repeated.
    """
    return await _hop(_short_threads(), lambda: _run(function, args, kwargs, is_short=True))


async def at_length(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The same for what takes long: a digest, a rendered screen, a page of output. It keeps no transaction waiting.

    It may write, though no more than a row at its end: then it is one of SQLite's other writers.
    """
    return await _hop(_long_threads(), lambda: _run(function, args, kwargs, is_short=False))


async def _hop(threads: DatabaseThreads, work: Callable[[], T]) -> T:
    for attempt in range(ATTEMPTS):
        try:
            result: T = await threads.submit(work)
        except NotBegunError as error:
            raise StorageUnavailable from error
        except _NotConnectedError as error:
            cause: BaseException = error.__cause__ or error
        except (OperationalError, InterfaceError) as error:
            if not _is_rolled_back(error):
                raise StorageUnavailable from error
            cause = error
        else:
            return result
        if attempt + 1 < ATTEMPTS:
            await asyncio.sleep(FIRST_BACKOFF_SECONDS * 2**attempt * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not a secret
    raise StorageUnavailable from cause


def close_threads() -> None:
    """Ends the threads and their connections; the next hop makes new ones."""
    global _short, _long
    ending, _short, _long = (_short, _long), None, None
    for threads in ending:
        if threads is not None:
            threads.close()


# Threads that a process leaves behind are cut off wherever they are: the transactions begun are to come to their ends.
atexit.register(close_threads)


def _short_threads() -> DatabaseThreads:
    global _short  # noqa: PLW0603
    if _short is None:
        _short = DatabaseThreads(conf.database_threads, name="database", on_end=_close_connection)
    return _short


def _long_threads() -> DatabaseThreads:
    global _long  # noqa: PLW0603
    if _long is None:
        _long = DatabaseThreads(LONG_THREADS, name="database-long", on_end=_close_connection)
    return _long


def _close_connection() -> None:
    # Looked up here: each thread has a connection of its own.
    connection.close()


def _run(function: Callable[..., T], args: tuple[object, ...], kwargs: dict[str, object], *, is_short: bool) -> T:
    try:
        _ensure_usable(is_short=is_short)
    except (OperationalError, InterfaceError) as error:
        raise _NotConnectedError from error
    try:
        return function(*args, **kwargs)
    except (OperationalError, InterfaceError):
        connection.close_if_unusable_or_obsolete()
        raise


def _ensure_usable(*, is_short: bool) -> None:
    connection.close_if_unusable_or_obsolete()
    if connection.vendor == "postgresql" and connection.connection is not None and not _has_something_to_read(connection.connection):
        # A server that ends or ended a connection says so on it: silence saves the question whether it still works.
        connection.health_check_done = True  # type: ignore[attr-defined] # not in the stubs
    is_new = connection.connection is None
    connection.ensure_connection()
    if is_new and connection.vendor == "postgresql":
        clock.measure()
        if is_short:
            with connection.cursor() as cursor:
                cursor.execute(_PREFER_INDEXES)
    # The thread keeps it; those of Django's requests are closed with them, as each request has a thread of its own.
    connection.close_at = None


def _has_something_to_read(raw: Any) -> bool:
    if raw.closed:
        return True
    poll = select.poll()
    poll.register(raw.fileno(), select.POLLIN)
    return bool(poll.poll(0))


def _is_rolled_back(error: Exception) -> bool:
    """SQLite says "locked" or "busy" only for what it did not do; PostgreSQL has a code for it."""
    state = getattr(error.__cause__, "sqlstate", None)
    if state is not None:
        return state in _ROLLED_BACK_STATES or state.startswith(_RESOURCE_CLASS)
    return connection.vendor == "sqlite" and ("locked" in str(error) or "busy" in str(error))
