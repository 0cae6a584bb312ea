"""A release after this one: this clone, with a table and a daemon that are not the same."""

import subprocess
from pathlib import Path
from typing import Final

from tests.support.stack import PROJECT_ROOT

_MIGRATION: Final = '''"""A column that only the next release knows."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("projects", "{before}")]
    operations = [
        migrations.RunSQL(
            "ALTER TABLE projects_commandsession ADD COLUMN next integer NOT NULL DEFAULT 0"
        )
    ]
'''


def clone_release(directory: Path) -> None:
    """Clone the release of this checkout, as it was committed last, into a new directory."""
    subprocess.run(["git", "clone", "--quiet", str(PROJECT_ROOT), str(directory)], check=True)


def make_next_release(directory: Path) -> None:
    """Make a release after this one in a new directory."""
    clone_release(directory)
    migrations = directory / "projects/migrations"
    before = max(path.stem for path in migrations.glob("[0-9]*.py"))
    (migrations / "9999_next.py").write_text(_MIGRATION.format(before=before))
    with (directory / "controller_client/__init__.py").open("a") as daemon:
        daemon.write("# The next release.\n")
