import json
import uuid
from datetime import UTC
from hashlib import sha256

import django.utils.timezone
from django.db import migrations, models


_REFUSAL = "the audit log is append-only"
# INSERT OR REPLACE would remove a row without a word to a DELETE trigger.
_SQLITE = f"""
CREATE TRIGGER audit_event_is_not_changed BEFORE UPDATE ON projects_auditevent
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER audit_event_is_not_deleted BEFORE DELETE ON projects_auditevent
WHEN NOT EXISTS (SELECT 1 FROM projects_auditmark WHERE project_id = OLD.project_id AND kind = 'expiry' AND seq >= OLD.seq)
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER audit_event_is_not_replaced BEFORE INSERT ON projects_auditevent
WHEN EXISTS (SELECT 1 FROM projects_auditevent WHERE id = NEW.id OR (project_id = NEW.project_id AND seq = NEW.seq))
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER audit_mark_is_not_changed BEFORE UPDATE ON projects_auditmark
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER audit_mark_is_not_deleted BEFORE DELETE ON projects_auditmark
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
CREATE TRIGGER audit_mark_is_not_replaced BEFORE INSERT ON projects_auditmark
WHEN EXISTS (SELECT 1 FROM projects_auditmark WHERE id = NEW.id OR (project_id = NEW.project_id AND kind = NEW.kind AND seq = NEW.seq))
BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END;
"""
_POSTGRESQL = f"""
CREATE FUNCTION holdline_audit_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = 'projects_auditevent' THEN
        IF EXISTS (SELECT 1 FROM projects_auditmark WHERE project_id = OLD.project_id AND kind = 'expiry' AND seq >= OLD.seq) THEN
            RETURN OLD;
        END IF;
    END IF;
    RAISE EXCEPTION '{_REFUSAL}';
END $$;
CREATE TRIGGER audit_event_is_kept BEFORE UPDATE OR DELETE ON projects_auditevent
    FOR EACH ROW EXECUTE FUNCTION holdline_audit_append_only();
CREATE TRIGGER audit_mark_is_kept BEFORE UPDATE OR DELETE ON projects_auditmark
    FOR EACH ROW EXECUTE FUNCTION holdline_audit_append_only();
CREATE TRIGGER audit_event_is_not_emptied BEFORE TRUNCATE ON projects_auditevent
    FOR EACH STATEMENT EXECUTE FUNCTION holdline_audit_append_only();
CREATE TRIGGER audit_mark_is_not_emptied BEFORE TRUNCATE ON projects_auditmark
    FOR EACH STATEMENT EXECUTE FUNCTION holdline_audit_append_only();
"""


def chain(apps, _schema_editor):
    """Rows from before there was a chain become its beginning."""
    events = apps.get_model("projects", "AuditEvent").objects
    events.filter(project_id=None).update(project_id=uuid.UUID(int=0))
    heads = {}
    for row in events.order_by("id").iterator():
        seq, previous = heads.get(row.project_id, (0, "0" * 64))
        ids = [None if each is None else str(each) for each in (row.project_id, row.controller_id, row.session_id)]
        at = row.created_at.astimezone(UTC).isoformat(timespec="microseconds")
        content = json.dumps([seq + 1, at, *ids, row.actor, row.action, row.detail], sort_keys=True, separators=(",", ":"))
        digest = sha256(f"{previous}\n{content}".encode()).hexdigest()
        heads[row.project_id] = (seq + 1, digest)
        events.filter(id=row.id).update(seq=seq + 1, hash=digest)


def refuse_changes(_apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor == "postgresql":
        schema_editor.execute(_POSTGRESQL, params=None)
        return
    for statement in _SQLITE.split("END;"):
        if statement.strip():
            schema_editor.execute(f"{statement} END;", params=None)


def allow_changes(_apps, schema_editor):
    connection = schema_editor.connection
    if connection.vendor == "postgresql":
        schema_editor.execute("DROP FUNCTION holdline_audit_append_only() CASCADE", params=None)
        return
    for table in ("event", "mark"):
        for what in ("changed", "deleted", "replaced"):
            schema_editor.execute(f"DROP TRIGGER audit_{table}_is_not_{what}", params=None)


class Migration(migrations.Migration):
    dependencies = [("projects", "0003_monitors")]

    operations = [
        migrations.AlterModelOptions(
            name="auditevent", options={"ordering": ("-id",), "permissions": (("export_auditevent", "Can export the audit log"),)}
        ),
        migrations.AddField(model_name="auditevent", name="seq", field=models.PositiveBigIntegerField(null=True)),
        migrations.AddField(model_name="auditevent", name="hash", field=models.CharField(default="", max_length=64)),
        migrations.RunPython(chain, migrations.RunPython.noop),
        migrations.AlterField(model_name="auditevent", name="project_id", field=models.UUIDField(db_index=True)),
        migrations.AlterField(model_name="auditevent", name="seq", field=models.PositiveBigIntegerField()),
        migrations.AlterField(model_name="auditevent", name="hash", field=models.CharField(max_length=64)),
        migrations.AddConstraint(
            model_name="auditevent",
            constraint=models.UniqueConstraint(fields=("project_id", "seq"), name="one_audit_chain_per_project"),
        ),
        migrations.CreateModel(
            name="AuditMark",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("project_id", models.UUIDField()),
                ("kind", models.CharField(choices=[("head", "Head"), ("expiry", "Expiry")], max_length=8)),
                ("seq", models.PositiveBigIntegerField()),
                ("hash", models.CharField(max_length=64)),
                ("signature", models.CharField(max_length=64)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project_id", "kind", "seq"), name="one_audit_mark_per_row")],
            },
        ),
        migrations.RunPython(refuse_changes, allow_changes),
    ]
