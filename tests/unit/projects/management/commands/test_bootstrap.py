"""``manage.py bootstrap`` makes a credential once, reuses it, and replaces one that is void."""

import io
import json
import stat
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth import authenticate
from django.core.management import call_command
from django.test import Client
from django.utils import timezone

from backup import suspension
from projects.models import ApiToken, AuditEvent, Controller, ControllerCredential, Project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def data_dir(tmp_path: Path, settings: Any) -> Path:
    settings.DATA_DIR = tmp_path
    return tmp_path


ROOMY = {"max_interactive_sessions": 8, "lifetime_seconds": 86_400}


def bootstrap(**limits: int) -> dict[str, Any]:
    answer = io.StringIO()
    call_command("bootstrap", url="http://127.0.0.1:8000", stdout=answer, **limits)
    return dict(json.loads(answer.getvalue()))


def token_in(data_dir: Path) -> str:
    return str(
        json.loads((data_dir / "mcp.json").read_text())["mcpServers"]["holdline"]["headers"][
            "Authorization"
        ]
    )


def test_a_first_run_makes_everything_and_keeps_secrets_private(data_dir: Path) -> None:
    made = bootstrap()
    assert made["mcp_url"] == "http://127.0.0.1:8000/mcp"
    assert authenticate(username="admin", password=made["admin_password"]) is not None
    for name in ("api_token", "controller_credential", "mcp.json"):
        assert stat.S_IMODE((data_dir / name).stat().st_mode) == 0o600
    assert (data_dir / "api_token").read_text().strip() in token_in(data_dir)


def test_a_second_run_changes_nothing_but_an_unused_password(data_dir: Path) -> None:
    first, token = bootstrap(), token_in(data_dir)
    second = bootstrap()
    assert token_in(data_dir) == token
    made = AuditEvent.objects.get(action="project.create")
    assert (made.actor, made.detail) == ("bootstrap", {"name": "quickstart"})
    assert made.project_id == Project.objects.get().id
    assert [
        model.objects.count() for model in (Project, ApiToken, Controller, ControllerCredential)
    ] == [1, 1, 1, 1]
    assert second["admin_password"] not in (None, first["admin_password"])
    assert authenticate(username="admin", password=first["admin_password"]) is None


def test_a_password_that_was_used_is_left_alone(data_dir: Path) -> None:
    password = bootstrap()["admin_password"]
    client = Client()
    assert client.login(username="admin", password=password)
    assert bootstrap()["admin_password"] is None
    assert authenticate(username="admin", password=password) is not None


@pytest.mark.parametrize("damage", ["missing", "nonsense", "revoked"])
def test_credentials_that_open_nothing_are_replaced(data_dir: Path, damage: str) -> None:
    bootstrap()
    token = token_in(data_dir)
    for name in ("api_token", "controller_credential"):
        if damage == "missing":
            (data_dir / name).unlink()
        elif damage == "nonsense":
            (data_dir / name).write_text("hl_0_x\n")
    if damage == "revoked":
        from django.utils import timezone

        ApiToken.objects.update(revoked_at=timezone.now())
        ControllerCredential.objects.update(revoked_at=timezone.now())
    bootstrap()
    assert token_in(data_dir) != token
    assert (
        ApiToken.objects.count(),
        ControllerCredential.objects.count(),
        Controller.objects.count(),
    ) == (2, 2, 1)


def test_limits_are_those_of_a_project_that_is_made_now(data_dir: Path) -> None:
    made = bootstrap(**ROOMY)
    assert (made["max_interactive_sessions"], made["lifetime_seconds"]) == (8, 86_400)
    Project.objects.update(max_interactive_sessions=2, max_lifetime_seconds=600)
    again = bootstrap(**ROOMY)
    assert (again["max_interactive_sessions"], again["lifetime_seconds"]) == (2, 600)


def test_after_a_restore_no_token_is_made_that_is_not_suspended(data_dir: Path) -> None:
    assert bootstrap()["is_token_suspended"] is False
    kept = token_in(data_dir)
    suspension.suspend(made_at=timezone.now(), release="1", actor="test")
    assert (bootstrap()["is_token_suspended"], token_in(data_dir)) == (True, kept)
    (data_dir / "api_token").unlink()
    assert (bootstrap()["is_token_suspended"], token_in(data_dir) != kept) == (True, True)
    assert not ApiToken.objects.filter(suspended_at__isnull=True).exists()
    suspension.confirm(actor="test")
    assert bootstrap()["is_token_suspended"] is False
    assert ApiToken.objects.count() == 2
