from django.db import migrations, models


def note_uses(apps, schema_editor):
    """Calls that were carried out before are on record by what they did."""
    Approval = apps.get_model('projects', 'Approval')
    done = apps.get_model('projects', 'ActionRequest').objects.filter(
        project_id=models.OuterRef('project_id'), request_id=models.OuterRef('request_id')
    )
    used = Approval.objects.filter(models.Exists(done), answer='approved')
    used.update(used_at=models.F('answered_at'))


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0035_unnamed_seconds'),
    ]

    operations = [
        migrations.AddField(
            model_name='approval',
            name='used_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(note_uses, migrations.RunPython.noop),
    ]
