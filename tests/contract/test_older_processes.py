"""Server processes of an older release go on with the tables of this one, until they are replaced.

They write rows without the columns that they do not know, so the database has to fill these in.
"""

from collections.abc import Iterator
from typing import Final

from django.apps import apps
from django.db.migrations import AddField
from django.db.migrations.loader import MigrationLoader
from django.db.models import NOT_PROVIDED

OLDEST: Final = {"projects": 12, "agent": 2, "console": 0}
"""The last migration of each app in the oldest supported release (docs/reference/releases.md)."""
# The runs of older processes end: docs/reference/releases.md says so.
GONE: Final = {"agentapproval", "projectapprovals"}


def _added() -> Iterator[tuple[str, str, str]]:
    for (app, name), migration in MigrationLoader(None).disk_migrations.items():
        if int(name[:4]) > OLDEST.get(app, 9999):
            for step in migration.operations:
                if isinstance(step, AddField) and step.model_name_lower not in GONE:
                    yield app, step.model_name_lower, step.name


def test_the_database_fills_in_every_column_that_was_added() -> None:
    empty = []
    for app, model, name in _added():
        field = apps.get_model(app, model)._meta.get_field(name)
        has_value = field.null or getattr(field, "db_default", NOT_PROVIDED) is not NOT_PROVIDED
        # A foreign key that is added with its table is a part of that table.
        if not has_value and not field.is_relation:
            empty.append(f"{app}.{model}.{name}")
    assert empty == []
