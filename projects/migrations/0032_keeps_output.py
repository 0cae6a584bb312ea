"""Lets a project keep nothing of what its sessions printed after their end."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0031_attention_messages'),
    ]

    operations = [
        migrations.AddField(
            model_name='project',
            name='keeps_output',
            field=models.BooleanField(db_default=True, default=True, help_text='Off: a minute after the end of a session, all that it printed is deleted, with the prompts. Who started it, who typed, and how it ended stay.', verbose_name='keeps what was printed after the end'),
        ),
    ]
