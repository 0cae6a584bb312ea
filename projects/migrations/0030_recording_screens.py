"""Adds the screens of recordings that a replay jumps to."""


import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0029_approvals'),
    ]

    operations = [
        migrations.CreateModel(
            name='RecordingScreen',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('place', models.PositiveBigIntegerField()),
                ('stdout', models.PositiveBigIntegerField()),
                ('stderr', models.PositiveBigIntegerField()),
                ('time', models.FloatField()),
                ('state', models.BinaryField()),
                ('session', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='screens', to='projects.commandsession')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('session', 'place'), name='one_screen_per_place')],
            },
        ),
    ]
