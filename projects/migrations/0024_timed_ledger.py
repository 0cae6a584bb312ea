"""Adds the times of hosts to output, and the events of sessions."""


import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0023_held_keyboards'),
    ]

    operations = [
        migrations.AddField(
            model_name='controllercommand',
            name='event',
            field=models.JSONField(null=True),
        ),
        migrations.AddField(
            model_name='outputchunk',
            name='host_clock',
            field=models.FloatField(null=True),
        ),
        migrations.AddField(
            model_name='outputchunk',
            name='host_time',
            field=models.DateTimeField(null=True),
        ),
        migrations.CreateModel(
            name='SessionEvent',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('seq', models.PositiveBigIntegerField()),
                ('kind', models.CharField(choices=[('prompt', 'Prompt'), ('input', 'Input'), ('resize', 'Resize'), ('take_over', 'Take Over'), ('hand_back', 'Hand Back'), ('approval', 'Approval'), ('gap', 'Gap'), ('lifetime', 'Lifetime'), ('end', 'End')], max_length=16)),
                ('offset', models.PositiveBigIntegerField()),
                ('host_time', models.DateTimeField(null=True)),
                ('host_clock', models.FloatField(null=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('actor', models.CharField(blank=True, max_length=128)),
                ('detail', models.JSONField(default=dict)),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='events', to='projects.commandsession')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('session', 'seq'), name='one_event_per_number')],
            },
        ),
    ]
