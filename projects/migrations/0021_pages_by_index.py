"""Indexes in whose order pages of sessions and monitors are read."""

from django.db import migrations, models
from django.db.models import F, Q

_ACTIVE = Q(state__in=["PENDING", "RUNNING", "SENT"])


class AddIndexBesideWriters(migrations.AddIndex):
    """On PostgreSQL the index of a large table is built while servers go on writing to it.

    What an interrupted build left is removed first, so the migration can be repeated.
    """

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        if schema_editor.connection.vendor != "postgresql":
            super().database_forwards(app_label, schema_editor, from_state, to_state)
            return
        schema_editor.execute("SET statement_timeout = 0")
        schema_editor.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{self.index.name}"')
        model = to_state.apps.get_model(app_label, self.model_name)
        schema_editor.add_index(model, self.index, concurrently=True)


class Migration(migrations.Migration):
    # An index cannot be built beside writers inside of a transaction.
    atomic = False

    dependencies = [("projects", "0020_monitor_requests")]

    operations = [
        AddIndexBesideWriters(
            "commandsession",
            models.Index(fields=("project", "-created_at"), name="sessions_of_project"),
        ),
        AddIndexBesideWriters(
            "commandsession",
            models.Index(fields=("controller", "-created_at"), name="sessions_of_controller"),
        ),
        AddIndexBesideWriters(
            "commandsession",
            models.Index(
                fields=("project", "-created_at"), condition=_ACTIVE, name="active_sessions_of_project"
            ),
        ),
        AddIndexBesideWriters(
            "commandsession",
            models.Index(
                fields=("kind", "ended_at"),
                condition=Q(ended_at__isnull=False, cleared_at__isnull=True),
                name="uncleared_sessions_of_kind",
            ),
        ),
        AddIndexBesideWriters(
            "monitor", models.Index(fields=("project", "-started_at"), name="monitors_of_project")
        ),
        AddIndexBesideWriters(
            "monitor",
            models.Index(
                fields=("project", "-started_at"),
                condition=Q(status="active"),
                name="active_monitors_of_project",
            ),
        ),
        AddIndexBesideWriters(
            "monitor",
            models.Index(
                fields=("stopped_at",),
                condition=Q(stopped_at__isnull=False, first_offset__lt=F("next_offset")),
                name="stopped_monitors_with_bytes",
            ),
        ),
        AddIndexBesideWriters(
            "monitor", models.Index(fields=("-started_at",), name="monitors_by_start")
        ),
    ]
