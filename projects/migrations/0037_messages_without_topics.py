from django.db import migrations


def forget_forms(apps, schema_editor):
    """Take out the topics of ntfy. What is still to be sent gets its facts from its events."""
    messages = apps.get_model('projects', 'AttentionMessage').objects
    # Only the form of webhooks is kept: it is the facts.
    messages.exclude(body__startswith='{"type":').update(body='')


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0036_approvals_used'),
    ]

    operations = [
        migrations.RunPython(forget_forms, migrations.RunPython.noop),
    ]
