from django.db import migrations, models

_TABLES = ("projects_auditevent", "projects_auditmark")
# INSERT OR REPLACE would remove a row without a word to a DELETE trigger.
_NOT_REPLACED = """
CREATE TRIGGER audit_mark_is_not_replaced BEFORE INSERT ON projects_auditmark
WHEN EXISTS (
    SELECT 1 FROM projects_auditmark
    WHERE id = NEW.id
    OR (project_id = NEW.project_id AND kind = NEW.kind AND seq = NEW.seq AND hash = NEW.hash AND signature = NEW.signature)
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END
"""
_lifted = []


def lift_triggers(_apps, schema_editor):
    """SQLite makes the table anew for another constraint, and forgets its triggers with the old one."""
    if schema_editor.connection.vendor != "sqlite":
        return
    with schema_editor.connection.cursor() as cursor:
        cursor.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger' AND tbl_name IN (%s, %s)", _TABLES)
        _lifted[:] = cursor.fetchall()
    for name, _sql in _lifted:
        schema_editor.execute(f"DROP TRIGGER {name}", params=None)


def set_triggers(_apps, schema_editor):
    if schema_editor.connection.vendor != "sqlite":
        return
    for name, sql in _lifted:
        schema_editor.execute(_NOT_REPLACED if name == "audit_mark_is_not_replaced" else sql, params=None)


class Migration(migrations.Migration):
    dependencies = [("projects", "0015_commands_sent_again")]

    operations = [
        migrations.RunPython(lift_triggers, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="auditmark", name="one_audit_mark_per_row"),
        migrations.AddConstraint(
            model_name="auditmark",
            constraint=models.UniqueConstraint(
                fields=("project_id", "kind", "seq", "hash", "signature"), name="one_audit_mark_per_word"
            ),
        ),
        migrations.RunPython(set_triggers, migrations.RunPython.noop),
    ]
