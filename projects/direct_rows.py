"""Rows that are written while a caller waits: columns and types are the model's, the statement is built once.

The ORM builds each statement anew, which takes several times as long as the database takes to execute it.
"""

from functools import cache
from typing import Any

from django.db import connection
from django.db.models import Model


def row_insert(row: Model) -> None:
    """Inserts a row whose key is set. Raises IntegrityError as ``save(force_insert=True)`` does; sends no signal."""
    values = [_prepared(field, getattr(row, field.attname)) for field in _meta(type(row)).concrete_fields]
    with connection.cursor() as cursor:
        cursor.execute(_insertion(type(row)), values)


def row_update(model: type[Model], key: Any, **values: Any) -> None:
    """Sets columns of the row with that primary key, by the names of their fields."""
    meta = _meta(model)
    prepared = [_prepared(meta.get_field(name), value) for name, value in values.items()]
    with connection.cursor() as cursor:
        cursor.execute(_change(model, tuple(values)), [*prepared, _prepared(meta.pk, key)])


def _meta(model: type[Model]) -> Any:
    return model._meta  # noqa: SLF001 - Django documents it


def _prepared(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection)


@cache
def _insertion(model: type[Model]) -> str:
    meta = _meta(model)
    columns = ", ".join(f'"{field.column}"' for field in meta.concrete_fields)
    places = ", ".join("%s" for _ in meta.concrete_fields)
    return f"INSERT INTO {meta.db_table} ({columns}) VALUES ({places})"  # noqa: S608 - names of the model


@cache
def _change(model: type[Model], names: tuple[str, ...]) -> str:
    meta = _meta(model)
    columns = ", ".join(f'"{meta.get_field(name).column}" = %s' for name in names)
    return f"UPDATE {meta.db_table} SET {columns} WHERE {meta.pk.column} = %s"  # noqa: S608 - names of the model
