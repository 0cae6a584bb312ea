"""``manage.py bootstrap``: make what a first start needs, or find it again.

That is a project, an API token, a controller with its credential, an admin user, and the
configuration of an MCP client. Secrets go to files of mode 0600 in the data directory, and are
reused while they are valid. The command prints JSON. The JSON holds the admin's password until
somebody has logged in with it, since a password is stored nowhere.
"""

import json
import os
import secrets
from argparse import ArgumentParser
from contextlib import suppress
from pathlib import Path
from typing import Any

from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import transaction

from projects.accounts.authentication import authenticate_controller
from projects.accounts.credentials import (
    active_credentials,
    api_token_create,
    controller_create,
    controller_credential_create,
)
from projects.accounts.token_check import authenticate_api_token
from projects.accounts.tokens import digest_of, shown_token
from projects.audit.log import audit
from projects.enrolment.revocation import controller_credential_revoke
from projects.errors.access import Unauthenticated
from projects.management.refusals import RefusingCommand
from projects.models import ApiToken, Controller, Project, Restore

ADMIN_NAME = "admin"


class Command(RefusingCommand):
    help = "Make (or find again) a project, an API token, a controller and an admin user"

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--project", default="quickstart")
        parser.add_argument("--controller", default="local")
        parser.add_argument(
            "--url", required=True, help="base URL of the server, such as http://127.0.0.1:8000"
        )
        parser.add_argument(
            "--max-interactive-sessions",
            type=int,
            default=None,
            help="limit of a project that is made now (default: 1)",
        )
        parser.add_argument(
            "--lifetime-seconds",
            type=int,
            default=None,
            help="default and maximum lifetime of interactive sessions in a project that is made "
            "now (default: INTERACTIVE_CMD_TIMEOUT_SECONDS)",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        data_dir = Path(settings.DATA_DIR)
        project = _project(
            options["project"], options["max_interactive_sessions"], options["lifetime_seconds"]
        )
        token_file, credential_file, client_file = (
            data_dir / name for name in ("api_token", "controller_credential", "mcp.json")
        )
        token, is_suspended = _api_token(project, token_file)
        _controller_credential(project, options["controller"], credential_file)
        server = {
            "type": "http",
            "url": f"{options['url']}/mcp",
            "headers": {"Authorization": f"Bearer {token}"},
        }
        _write_private(
            client_file, json.dumps({"mcpServers": {"holdline": server}}, indent=2) + "\n"
        )
        answer = {
            "project": project.name,
            "controller": options["controller"],
            "max_interactive_sessions": project.max_interactive_sessions,
            "lifetime_seconds": project.longest_lifetime_seconds,
            "token_file": str(token_file),
            "is_token_suspended": is_suspended,
            "credential_file": str(credential_file),
            "client_file": str(client_file),
            "mcp_url": server["url"],
            "console_url": f"{options['url']}/",
            "admin_url": f"{options['url']}/admin/",
            "admin_name": ADMIN_NAME,
            "admin_password": _admin_password(),
        }
        self.stdout.write(json.dumps(answer))


@transaction.atomic
def _project(
    name: str, max_interactive_sessions: int | None, lifetime_seconds: int | None
) -> Project:
    # A project that exists keeps its limits: somebody may have changed them.
    found = Project.objects.filter(name=name).first()
    if found is None:
        found = Project(
            name=name,
            default_lifetime_seconds=lifetime_seconds,
            max_lifetime_seconds=lifetime_seconds,
        )
        if max_interactive_sessions is not None:
            found.max_interactive_sessions = max_interactive_sessions
        found.clean_fields()
        found.save(force_insert=True)
        audit("bootstrap", "project.create", (found.id, None, None), {"name": name})
    return found


def _api_token(project: Project, file: Path) -> tuple[str, bool]:
    """The token in the file if it is still valid for this project, otherwise a new one.

    True with it if it is refused until the restore of the database is confirmed. A new one is
    refused as well: nobody acts on what a restore brought back before somebody has looked at it.
    """
    kept = _read(file)
    with suppress(Unauthenticated):
        if async_to_sync(authenticate_api_token)(f"Bearer {kept}").project_id == project.id:
            return kept, False
    is_suspended = Restore.objects.filter(confirmed_at__isnull=True).exists()
    if is_suspended and _waits_for_confirmation(kept, project):
        return kept, True
    _row, token = api_token_create(
        project=project, name="quickstart", is_suspended=is_suspended, actor="bootstrap"
    )
    _write_private(file, token + "\n")
    return token, is_suspended


def _waits_for_confirmation(text: str, project: Project) -> bool:
    try:
        shown = shown_token(f"Bearer {text}")
    except Unauthenticated:
        return False
    return ApiToken.objects.filter(
        project=project,
        key_id=shown.key_id,
        digest=digest_of(shown.secret),
        revoked_at__isnull=True,
        suspended_at__isnull=False,
    ).exists()


def _controller_credential(project: Project, name: str, file: Path) -> None:
    controller = Controller.objects.filter(
        project=project, name=name, revoked_at__isnull=True
    ).first() or controller_create(project=project, name=name, actor="bootstrap")
    with suppress(Unauthenticated):
        if async_to_sync(authenticate_controller)(f"Bearer {_read(file)}")[0] == controller.id:
            return
    # The credential is lost or not valid; nobody else may find and use it.
    for old in active_credentials(controller.id):
        controller_credential_revoke(credential=old, actor="bootstrap")
    _row, credential = controller_credential_create(controller=controller, actor="bootstrap")
    _write_private(file, credential + "\n")


def _admin_password() -> str | None:
    """A new password, or None once somebody has logged in."""
    users = get_user_model().objects
    admin = users.filter(username=ADMIN_NAME).first()
    if admin is not None and admin.last_login is not None:
        return None
    password = secrets.token_urlsafe(12)
    if admin is None:
        users.create_superuser(ADMIN_NAME, password=password)
    else:
        admin.set_password(password)
        admin.save(update_fields=["password"])
    return password


def _read(file: Path) -> str:
    try:
        return file.read_text().strip()
    except OSError:
        return ""


def _write_private(path: Path, text: str) -> None:
    """Replace the file at once, readable by its owner only."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(text)
    fresh.replace(path)
