"""A server with a fleet for the console: 40 hosts with 200 sessions, one of them at a password.

The sessions of 39 hosts are rows; those of the host ``web-17`` are real programs of a real daemon.
Run as a program, in the environment of a server, this file adds the rows, and prints the key of an
administrator's login.
"""

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from tests.support.browser import Page, browser
from tests.support.stack import PROJECT_ROOT, Stack, running_stack

HOST: Final = "web-17"
_ROLES: Final = ("web", "db", "cache", "queue")
# Command, kind of what it waits for, prompt, and the last line of its screen.
_PROGRAMS: Final = (
    ("apt-get upgrade", "line", "Do you want to continue? [Y/n] ", "After this operation, 12 MB"),
    ("bash deploy.sh --all", "", "", "Step 7 of 19: building the image"),
    ("python manage.py migrate", "", "", "  Applying orders.0042_totals..."),
    ("psql -d orders", "shell", "orders=> ", "(12 rows)"),
    ("tail -f /var/log/app.log", "", "", "GET /health 200 1 ms"),
    ("vim /etc/nginx/nginx.conf", "screen", "", '"nginx.conf" 214 lines, 7310 bytes'),
    ("less CHANGELOG", "key", ":", "## 4.2.0"),
    ("make -j4 test", "", "", "ok 318 of 1204"),
)


@dataclass(frozen=True)
class Fleet:
    """The stack with its fleet, and the address and the login of its console."""

    stack: Stack
    login: str

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.stack.port}"

    @contextmanager
    def page(self) -> Iterator[Page]:
        """A browser that is logged in."""
        with browser() as tab:
            tab.open(f"{self.address}/login/")
            tab.evaluate(f"document.cookie = 'sessionid={self.login}; path=/'")
            yield tab


@contextmanager
def fleet(*, sessions: int = 200) -> Iterator[Fleet]:
    """The fleet, while the block lasts."""
    import subprocess
    import sys

    # The server looks for the terminal emulator of the pages when it starts.
    subprocess.run([sys.executable, "-m", "quickstart.browser_files"], cwd=PROJECT_ROOT, check=True)
    command = [sys.executable, "-m", "benchmarks.console.stage", str(sessions)]
    limits = {"HOLDLINE_STARTS_PER_MINUTE": "0", "HOLDLINE_INPUT_BYTES_PER_MINUTE": "0"}
    with running_stack(server_environment=limits) as stack:
        environment = {
            **stack.server_environment(),
            "DJANGO_SETTINGS_MODULE": "config.settings.base",
        }
        made = subprocess.run(
            command, cwd=PROJECT_ROOT, env=environment, check=True, capture_output=True, text=True
        )
        yield Fleet(stack, made.stdout.split()[-1])


def _fill(sessions: int) -> str:
    """Add the fleet to the database of this process. Returns the key of a login."""
    from django.contrib.auth.models import User
    from django.test import Client

    from controller_client import __version__
    from projects.models import Controller, Project

    user = User.objects.create_superuser("ada")
    client = Client()
    client.force_login(user)
    project = Project.objects.get(name="first")
    Project.objects.filter(pk=project.pk).update(name="shop", max_interactive_sessions=500)
    Controller.objects.filter(project=project).update(name=HOST)
    later = _now() + timedelta(days=1)
    hosts = [
        Controller.objects.create(
            project=project,
            name=f"{_ROLES[number % len(_ROLES)]}-{number + 18}",
            hostname=f"ip-10-0-4-{number + 18}.internal",
            platform="Linux-6.1-x86_64",
            client_version=__version__ if number % 13 else "0.1.0",
            lease_expires_at=later,
        )
        for number in range(39)
    ]
    dice = random.Random(17)  # nosec B311 - the same fleet each time
    for number in range(sessions):
        _add_session(hosts[number % len(hosts)], dice)
    return str(client.session.session_key)


def _add_session(host: Any, dice: random.Random) -> None:
    from projects.models import CommandSession
    from projects.output import log as output_log
    from projects.output.log import NewChunk

    command, kind, prompt, line = dice.choice(_PROGRAMS)
    began = _now() - timedelta(seconds=dice.randrange(30, 5400))
    screen = f"{line}\r\n{prompt}".encode()
    session = CommandSession.objects.create(
        project_id=host.project_id,
        controller=host,
        command=command,
        state="RUNNING",
        started_by=dice.choice(("token:claude", "token:codex", "agent:nightly")),
        created_at=began,
        started_at=began,
        lifetime_seconds=86400,
        stdout_next_offset=len(screen),
        last_chunk_seq=1,
        terminal_state="awaiting_input" if kind else "running",
        terminal_kind=kind,
        terminal_evidence="kernel" if kind else "",
        terminal_prompt=prompt,
    )
    output_log.append([NewChunk(session.id, "stdout", 0, 1, screen)])


def _now() -> Any:
    from django.utils import timezone

    return timezone.now()


if __name__ == "__main__":
    import sys

    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    print(_fill(int(sys.argv[1])))
