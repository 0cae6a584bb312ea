"""Statements that are sent to PostgreSQL together, and their answers.

To wait for an answer costs more than most statements: the thread gives the interpreter away and
gets it back later, and the server's process sleeps and wakes up. So a statement waits here until
somebody asks for an answer. Then everything that waits is sent, in its order, and all answers are
taken: libpq's pipeline mode. After a statement that failed the server skips those behind it.

The statements are prepared, each once for each combination of types.
"""

import select
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache
from typing import Any, Final, NamedTuple

import psycopg
from django.db import InterfaceError
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult

MAX_PREPARED: Final = 200
"""At most this many statements stay prepared; those used longest ago are given up."""
_ENCODING: Final = "utf-8"
_Key = tuple[bytes, tuple[int, ...]]
"""The text of a statement, and the types of its parameters."""


class Answer:
    """The answer to one statement, which is sent when the answer is asked for, or before."""

    __slots__ = ("_next_row", "_pipeline", "_result")

    def __init__(self, pipeline: "Pipeline") -> None:
        self._pipeline = pipeline
        self._result: PGresult | None = None
        self._next_row = 0

    def arrived(self, result: PGresult) -> None:
        """Keep the result that the server sent."""
        self._result = result

    def wait(self) -> PGresult:
        """Send what waits, unless the answer is here. Raises as ``Pipeline.send`` does."""
        if self._result is None:
            self._pipeline.send()
        if self._result is None:
            raise InterfaceError("the statement was given up with its transaction")
        return self._result

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed or found."""
        return self.wait().command_tuples or 0

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None after the last one."""
        rows = self._rows(1)
        return rows[0] if rows else None

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        return self._rows(self.wait().ntuples)

    def _rows(self, most: int) -> list[tuple[Any, ...]]:
        result = self.wait()
        first, self._next_row = self._next_row, min(self._next_row + most, result.ntuples)
        return self._pipeline.loaded(result, first, self._next_row)


class _Waiting(NamedTuple):
    """A statement with its parameters as the server takes them."""

    text: bytes
    parameters: Sequence[Any]
    types: tuple[int, ...]
    formats: Sequence[Any]
    answer: Answer


class Pipeline:
    """The statements of one connection, which no other thread uses meanwhile.

    ``is_preparing`` is False behind a pooler that keeps no prepared statements. ``errors`` turns
    errors of psycopg into those of Django.
    """

    def __init__(
        self,
        raw: psycopg.Connection[Any],
        *,
        is_preparing: bool,
        errors: AbstractContextManager[None],
    ) -> None:
        self._raw, self._connection, self._errors = raw, raw.pgconn, errors
        self._is_preparing = is_preparing
        self._dumps, self._loads = Transformer(raw), Transformer(raw)
        self._waiting: list[_Waiting] = []
        self._names: OrderedDict[_Key, bytes] = OrderedDict()
        self._doomed: list[bytes] = []
        """Names of statements that the server may still have, and nobody uses any more."""
        self._count = 0
        self._poll = select.poll()
        self._poll.register(self._connection.socket, select.POLLIN)

    def add(self, statement: str, parameters: Sequence[Any] = ()) -> Answer:
        """Have ``statement``, with ``%s`` in the places of its parameters, wait to be sent."""
        answer = Answer(self)
        dumped = self._dumps.dump_sequence(parameters, [PyFormat.AUTO] * len(parameters))
        types, formats = self._dumps.types or (), self._dumps.formats or ()
        self._waiting.append(_Waiting(_numbered(statement), dumped, types, formats, answer))
        return answer

    @property
    def is_waiting(self) -> bool:
        """True if a statement waits to be sent."""
        return bool(self._waiting)

    def forget(self) -> None:
        """Give up what waits: its transaction is being rolled back."""
        self._waiting.clear()

    def send(self) -> None:
        """Send what waits, and take all answers.

        Raises the error of the first statement that failed, as Django has it, or OperationalError
        if the connection is lost.
        """
        if self._waiting:
            with self._errors:
                self._send()

    def _send(self) -> None:
        sent, self._waiting = self._waiting, []
        new: dict[_Key, bytes] = {}
        try:
            results = self._sent(sent, new)
        except BaseException:
            # Nobody knows what the server will still answer.
            self._raw.close()
            raise
        failed = next((each for each in results if each.status == ExecStatus.FATAL_ERROR), None)
        if failed is not None:
            # The server may have forgotten a statement, or its plan fits no more.
            gone = [self._names.pop((each.text, each.types), None) for each in sent]
            self._doomed += [*filter(None, gone), *new.values()]
            raise psycopg.errors.error_from_result(failed, encoding=_ENCODING)
        for each, result in zip(sent, results, strict=True):
            each.answer.arrived(result)
        self._names.update(new)
        self._give_up_names()

    def loaded(self, result: PGresult, first: int, end: int) -> list[tuple[Any, ...]]:
        """The rows ``[first, end)`` of a result."""
        self._loads.set_pgresult(result)
        return self._loads.load_rows(first, end, tuple)

    def _sent(self, statements: Sequence[_Waiting], new: dict[_Key, bytes]) -> list[PGresult]:
        """Send statements, and return the result of each. Names of new ones are put into ``new``.

        A statement that cannot be prepared has the result of that.
        """
        here = self._connection
        here.enter_pipeline_mode()
        doomed, self._doomed = self._doomed, []
        for name in doomed:
            # Not DEALLOCATE: this is no error for a name that the server does not know, nor in a
            # transaction that failed.
            here.send_close_prepared(name)
        are_prepared = [self._send_one(each, new) for each in statements]
        here.pipeline_sync()
        self._flush()
        for _ in doomed:
            self._result_of_command()
        results = []
        for is_prepared_now in are_prepared:
            prepared = self._result_of_command() if is_prepared_now else None
            result = self._result_of_command()
            is_refused = prepared is not None and prepared.status != ExecStatus.COMMAND_OK
            results.append(prepared if prepared is not None and is_refused else result)
        if (end := self._next_result()) is None or end.status != ExecStatus.PIPELINE_SYNC:
            raise psycopg.OperationalError("the connection is lost")
        here.exit_pipeline_mode()
        return results

    def _send_one(self, statement: _Waiting, new: dict[_Key, bytes]) -> bool:
        """Send one statement. Returns True if it is prepared first, which is a command itself."""
        text, parameters, types, formats, _ = statement
        if not (self._is_preparing and types):
            self._connection.send_query_params(
                text, parameters, param_types=types, param_formats=formats
            )
            return False
        key = text, types
        name = self._names.get(key) or new.get(key)
        is_new = name is None
        if name is None:
            self._count += 1
            name = new[key] = b"together_%d" % self._count
            self._connection.send_prepare(name, text, param_types=types)
        elif key in self._names:
            self._names.move_to_end(key)
        self._connection.send_query_prepared(name, parameters, param_formats=formats)
        return is_new

    def _give_up_names(self) -> None:
        while len(self._names) > MAX_PREPARED:
            self._doomed.append(self._names.popitem(last=False)[1])

    def _flush(self) -> None:
        """Hand everything to the kernel, and take answers meanwhile: both sides may be full."""
        while self._connection.flush():
            self._poll.modify(self._connection.socket, select.POLLIN | select.POLLOUT)
            if any(event & ~select.POLLOUT for _, event in self._poll.poll()):
                self._connection.consume_input()
        self._poll.modify(self._connection.socket, select.POLLIN)

    def _result_of_command(self) -> PGresult:
        """The result of the next command, with the mark of its end taken as well."""
        result = self._next_result()
        if result is None or self._next_result() is not None:
            raise psycopg.OperationalError("the connection is lost")
        return result

    def _next_result(self) -> PGresult | None:
        while self._connection.is_busy():
            self._poll.poll()
            self._connection.consume_input()
        return self._connection.get_result()


@lru_cache(maxsize=512)
def _numbered(statement: str) -> bytes:
    """The statement with ``$1``, ``$2`` and so on in the places of its parameters."""
    first, *others = statement.replace("%%", "\0").split("%s")
    parts = [first, *(f"${number}{part}" for number, part in enumerate(others, 1))]
    return "".join(parts).replace("\0", "%").encode()
