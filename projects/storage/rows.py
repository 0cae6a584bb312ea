"""Hand-written statements, and inserts and updates of rows, while a caller waits.

Statements go to the connection of the database's own library, which keeps them prepared. Django's
cursors take several times as long as the database takes to execute one.

Columns and types of inserts and updates are the model's, and each statement is built once. The ORM
builds it anew every time.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol, TypeVar, get_args, get_type_hints
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections
from django.db.models import Model

from projects.storage.columns import as_time, as_uuid, is_sqlite, sql

Row = TypeVar("Row", bound=NamedTuple)


class Executed(Protocol):
    """A statement that was executed, or on PostgreSQL will be once somebody wants its answer."""

    @property
    def rowcount(self) -> int:
        """The number of rows that the statement changed."""

    def fetchone(self) -> Any:
        """The next row; None after the last one."""

    def fetchall(self) -> Any:
        """All rows that are left."""


def execute(statement: str, parameters: Sequence[Any]) -> Executed:
    """Execute a hand-written statement with ``%s`` in the places of its parameters.

    On PostgreSQL a statement of a transaction waits until the answer to it, or to one behind it, is
    asked for, and at the latest for the commit; its errors are raised then. Nothing overtakes it
    (``projects.storage.postgresql``).

    Raises the errors of ``django.db``.
    """
    here: Any = connections[DEFAULT_DB_ALIAS]
    if here.queries_logged or here.execute_wrappers:
        # Somebody wants to see what is executed.
        return _executed(here.cursor(), statement, parameters)
    # As Django's own cursors do: the server may have ended the connection.
    here.close_if_health_check_failed()
    here.ensure_connection()
    here.validate_no_broken_transaction()
    with here.wrap_database_errors:
        if is_sqlite():
            executed: Executed = here.connection.execute(_with_marks(statement), parameters)
            return executed
        soon: Executed = here.execute_soon(statement, parameters)
        return soon


def _executed(cursor: Any, statement: str, parameters: Sequence[Any]) -> Executed:
    cursor.execute(statement, parameters)
    executed: Executed = cursor
    return executed


@lru_cache(maxsize=512)
def _with_marks(statement: str) -> str:
    """The statement as SQLite's library wants it."""
    return statement.replace("%s", "?").replace("%%", "%")


def fetch_rows(row_type: type[Row], statement: str, parameters: Sequence[Any]) -> list[Row]:
    """Execute ``statement`` and return its rows.

    ``row_type`` names the columns in their order. Fields that it declares as UUID, datetime or bool
    have such values on every database, or None. Other values are as the database returns them.
    """
    return [typed(row_type, row) for row in execute(statement, parameters).fetchall()]


def fetch_row(row_type: type[Row], statement: str, parameters: Sequence[Any]) -> Row | None:
    """Execute ``statement`` as ``fetch_rows`` does. Return its first row; None if it has none."""
    return row_soon(row_type, execute(statement, parameters))()


def row_soon(row_type: type[Row], executed: Executed) -> Callable[[], Row | None]:
    """Return the function that fetches the first row of a statement, as ``fetch_rows`` does.

    On PostgreSQL statements whose rows are fetched after all of them were executed make one trip.
    """
    if is_sqlite():
        # The row is here. Until it is fetched, a statement that writes is in the way of savepoints.
        row = executed.fetchone()
        return lambda: _typed_if_any(row_type, row)
    return lambda: _typed_if_any(row_type, executed.fetchone())


def _typed_if_any(row_type: type[Row], row: Iterable[Any] | None) -> Row | None:
    return None if row is None else typed(row_type, row)


def typed(row_type: type[Row], row: Iterable[Any]) -> Row:
    """The row that ``fetch_rows`` makes of what the database returned."""
    values = list(row)
    for position, convert in _converters(row_type):
        if values[position] is not None:
            values[position] = convert(values[position])
    return row_type._make(values)


@cache
def _converters(row_type: type) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
    """The positions whose values differ between databases, with the function for each."""
    known: dict[type, Callable[[Any], Any]] = {UUID: _as_uuid, datetime: as_time, bool: bool}
    hints = get_type_hints(row_type)
    return tuple(
        (position, known[kind])
        for position, name in enumerate(hints)
        for kind in (get_args(hints[name]) or (hints[name],))
        if kind in known
    )


def _as_uuid(value: UUID | str) -> UUID:
    return as_uuid(value) if isinstance(value, str) else value


def row_insert(row: Model) -> None:
    """Inserts a row whose key is set. Sends no signal.

    Raises IntegrityError as ``save(force_insert=True)`` does.
    """
    values = [
        _prepared(field, getattr(row, field.attname)) for field in _meta(type(row)).concrete_fields
    ]
    execute(_insertion(type(row)), values)


def row_update(model: type[Model], key: Any, **values: Any) -> None:
    """Sets columns of the row with that primary key, by the names of their fields."""
    _changed(model, key, {}, values)


def row_swap(
    model: type[Model],
    key: object,
    *,
    expected: Mapping[str, object],
    values: Mapping[str, object],
) -> bool:
    """Sets columns of the row with that primary key if its ``expected`` columns have these values.

    Columns are named by their fields. Returns False if nothing was changed: the row has other
    values, or there is no such row. No expected value may be None.
    """
    return _changed(model, key, expected, values).rowcount > 0


def _changed(
    model: type[Model], key: object, expected: Mapping[str, object], values: Mapping[str, object]
) -> Executed:
    meta = _meta(model)
    named = (*values.items(), (meta.pk.name, key), *expected.items())
    prepared = [_prepared(meta.get_field(name), value) for name, value in named]
    return execute(_change(model, tuple(values), (meta.pk.name, *expected)), prepared)


def _meta(model: type[Model]) -> Any:
    return model._meta


def _prepared(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection)


@cache
def _insertion(model: type[Model]) -> str:
    meta = _meta(model)
    columns = ", ".join(f'"{field.column}"' for field in meta.concrete_fields)
    places = ", ".join("%s" for _ in meta.concrete_fields)
    template = "INSERT INTO {table} ({columns}) VALUES ({places})"
    return sql(template, table=meta.db_table, columns=columns, places=places)


@cache
def _change(model: type[Model], names: tuple[str, ...], expected: tuple[str, ...]) -> str:
    meta = _meta(model)
    columns = ", ".join(f'"{meta.get_field(name).column}" = %s' for name in names)
    where = " AND ".join(f'"{meta.get_field(name).column}" = %s' for name in expected)
    template = "UPDATE {table} SET {columns} WHERE {where}"
    return sql(template, table=meta.db_table, columns=columns, where=where)
