"""Removes the indexes that those of the last migration make needless."""

import django.db.models.deletion
from django.db import migrations, models


def _without_index(model, related_name):
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to=f"projects.{model}",
    )


class Migration(migrations.Migration):
    dependencies = [("projects", "0021_pages_by_index")]

    operations = [
        migrations.RemoveIndex("commandsession", "session_by_project_state"),
        migrations.RemoveIndex("commandsession", "uncleared_sessions"),
        migrations.AlterField("commandsession", "controller", _without_index("controller", "sessions")),
        migrations.AlterField("commandsession", "project", _without_index("project", "sessions")),
        migrations.AlterField("monitor", "project", _without_index("project", "monitors")),
    ]
