# Sets of tools that a token is narrowed to.

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('projects', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='apitoken',
            name='toolsets',
            field=models.JSONField(default=list),
        ),
    ]
