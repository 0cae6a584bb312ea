"""One commit for all short transactions that wait at the same moment, on a database of one writer.

SQLite writes its pages, and takes and gives back its locks, once for each commit. So the writer's
thread runs what waits in its queue as parts of one transaction, in the order of the queue. Each
part sees the parts before it, as it would see their commits. A part that fails is undone alone
(``one_transaction``). Nobody gets a result before the commit, and what is to happen after a commit
(``transaction.on_commit``) waits for it as well.

An error of the storage, or a commit that fails, undoes all parts. Then each of them runs by itself,
so that it meets its own error.
"""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from django.db import DatabaseError, InterfaceError, connection, transaction

from projects.storage.faults import is_fault, is_rolled_back
from projects.storage.rows import execute

SHARING_SECONDS: Final = 0.02
"""No further part begins after this time: the first one waits for its result."""

End = Callable[[bool], None]


class PartOutcome(NamedTuple):
    """The result of one part, or its error."""

    result: object
    error: BaseException | None


class _Local(threading.local):
    """The transaction of this thread: whether it is shared, and the calls at its end."""

    is_shared = False
    ends: list[End] | None = None


_local = _Local()


class _AllUndone(Exception):
    """The storage failed in one of the parts."""


def is_shared() -> bool:
    """True in a part of a shared transaction."""
    return _local.is_shared


def at_end(call: End) -> None:
    """Call ``call`` after the ``one_transaction`` that runs here: with True if it is committed."""
    _ends_here().append(call)


@contextmanager
def one_transaction() -> Iterator[None]:
    """All of the block or nothing: a transaction, or a part of the one that is shared here."""
    with _part() if _local.is_shared else _whole():
        yield


@contextmanager
def _whole() -> Iterator[None]:
    with _ends(), transaction.atomic():
        yield


@contextmanager
def _ends() -> Iterator[None]:
    """Make the calls at the end of the block. It has committed if it raises no error."""
    before, _local.ends = _local.ends, []
    ends, is_committed = _local.ends, False
    try:
        yield
        is_committed = True
    finally:
        _local.ends = before
        _call(ends, is_committed=is_committed)


@contextmanager
def _part() -> Iterator[None]:
    known_hooks = len(connection.run_on_commit)
    execute("SAVEPOINT part", ())
    with _ends_of_part():
        try:
            yield
        except BaseException:
            # The blocks inside have marked the whole transaction, of which this part is undone.
            connection.needs_rollback = False
            _undo_part()
            connection.run_on_commit = connection.run_on_commit[:known_hooks]
            raise
    execute("RELEASE part", ())


def _undo_part() -> None:
    try:
        execute("ROLLBACK TO part", ())
        execute("RELEASE part", ())
    except BaseException:
        # Half of it may still be there: all parts have to go.
        connection.needs_rollback = True
        raise


@contextmanager
def _ends_of_part() -> Iterator[None]:
    """Make the calls of this part at once if it is undone."""
    ends = _ends_here()
    known = len(ends)
    try:
        yield
    except BaseException:
        undone, ends[known:] = ends[known:], []
        _call(undone, is_committed=False)
        raise


def _ends_here() -> list[End]:
    if _local.ends is None:
        raise RuntimeError("outside one_transaction")
    return _local.ends


def _call(ends: Sequence[End], *, is_committed: bool) -> None:
    for end in ends:
        end(is_committed)


# ---- in the thread of the writer -----------------------------------------------------------------


def run_shared(parts: Sequence[Callable[[], object]]) -> list[PartOutcome] | None:
    """Run parts in one transaction, and commit it. Return the outcomes of those that were run.

    The parts behind them are still to be run. None: nothing was done, and each part has to be run
    by itself.
    """
    outcomes: list[PartOutcome] = []
    try:
        with _ends(), transaction.atomic():
            _run_parts(parts, outcomes)
    except _AllUndone:
        return None
    except (DatabaseError, InterfaceError) as error:
        if is_rolled_back(error):
            return None
        return [PartOutcome(None, error) for _ in outcomes or parts]
    return outcomes


def _run_parts(parts: Sequence[Callable[[], object]], outcomes: list[PartOutcome]) -> None:
    deadline = time.monotonic() + SHARING_SECONDS
    _local.is_shared = True
    try:
        for part in parts:
            outcomes.append(_outcome_of(part))
            # Django would end such a transaction without an error, and without a commit.
            if connection.needs_rollback or connection.closed_in_transaction:
                raise _AllUndone
            if time.monotonic() > deadline:
                return
    finally:
        _local.is_shared = False


def _outcome_of(part: Callable[[], object]) -> PartOutcome:
    try:
        return PartOutcome(part(), None)
    except (DatabaseError, InterfaceError) as error:
        if is_fault(error):
            raise _AllUndone from error
        return PartOutcome(None, error)
    except MemoryError as error:
        # SQLite may have undone all parts.
        raise _AllUndone from error
    except BaseException as error:  # noqa: BLE001 - every error belongs to the one who waits for it
        return PartOutcome(None, error)
