"""A migrated database with projects, tokens and a controller, copied for each stack.

It is made once per test run. Run as a program (``python -m tests.support.provisioning LIMIT``) this
file fills the data directory of its environment and prints the credentials.
"""

import atexit
import functools
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

USUAL_LIMIT = 200
"""The interactive sessions that the first project allows at once, unless a stack says otherwise."""
_LIMIT_OF_FIRST = "UPDATE projects_project SET max_interactive_sessions = ? WHERE name = 'first'"
_PROJECT_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Provisioned:
    """Credentials of a fresh data directory, in the clear.

    ``token`` and ``reader_token`` belong to the first project; ``reader_token`` may only read.
    ``other_token`` belongs to a project without a controller, ``away_token`` to one whose
    controller never connects. ``credential`` and ``spare_credential`` belong to the same
    controller.
    """

    controller: str
    token: str
    reader_token: str
    credential: str
    spare_credential: str
    other_token: str
    away_token: str


def fill(data_dir: Path, max_interactive_sessions: int, **environment: str) -> Provisioned:
    """Migrate and fill the database of ``environment``, by default SQLite in ``data_dir``.

    The keys go to ``data_dir``.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "REDIS_URL"}
    }
    variables = {
        **kept,
        "HOLDLINE_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        **environment,
    }
    command = [sys.executable, "-m", "tests.support.provisioning", str(max_interactive_sessions)]
    done = subprocess.run(
        command, cwd=_PROJECT_ROOT, env=variables, check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return Provisioned(**json.loads(done.stdout.splitlines()[-1]))


@functools.cache
def _template() -> tuple[Path, Provisioned]:
    """A data directory to copy, and its credentials. It is removed when the test process ends."""
    data_dir = Path(tempfile.mkdtemp(prefix="holdline-template-"))
    atexit.register(shutil.rmtree, data_dir, ignore_errors=True)
    return data_dir, fill(data_dir, USUAL_LIMIT)


def provision(data_dir: Path, max_interactive_sessions: int) -> Provisioned:
    """Make ``data_dir`` a server's data directory.

    Its first project allows ``max_interactive_sessions`` at once.
    """
    template, provisioned = _template()
    shutil.copytree(template, data_dir)
    if max_interactive_sessions != USUAL_LIMIT:
        with closing(sqlite3.connect(data_dir / "db.sqlite3")) as database, database:
            database.execute(_LIMIT_OF_FIRST, (max_interactive_sessions,))
    return provisioned


def _fill(max_interactive_sessions: int) -> Provisioned:
    import django
    from django.core.management import call_command

    django.setup()
    call_command("migrate", verbosity=0)
    from projects.accounts.credentials import (
        api_token_create,
        controller_create,
        controller_credential_create,
    )
    from projects.models import Project

    first = Project.objects.create(
        name="first", max_interactive_sessions=max_interactive_sessions, max_lifetime_seconds=3600
    )
    other, away = Project.objects.create(name="other"), Project.objects.create(name="away")
    host = controller_create(project=first, name="host")
    controller_create(project=away, name="absent-host")
    return Provisioned(
        controller=host.name,
        token=api_token_create(project=first, name="tests")[1],
        reader_token=api_token_create(project=first, name="reader", scopes=("session:read",))[1],
        credential=controller_credential_create(controller=host)[1],
        spare_credential=controller_credential_create(controller=host)[1],
        other_token=api_token_create(project=other, name="other")[1],
        away_token=api_token_create(project=away, name="away")[1],
    )


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(_fill(int(sys.argv[1])))) + "\n")
