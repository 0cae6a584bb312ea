"""Text that others chose does nothing to the terminal of whoever types a command."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from backup import suspension
from controller_client.protocol.session_state import SessionState
from projects import services
from projects.accounts.credentials import api_token_create
from projects.models import Controller, Project
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


def _printed(*arguments: str) -> str:
    call_command(*arguments, stdout=(out := StringIO()))
    return out.getvalue()


@pytest.fixture
def host() -> Controller:
    """A host that gives its version a title for the window."""
    return Controller.objects.create(
        project=Project.objects.create(name="acme"), name="web-1", client_version="1\x1b]0;x\x07"
    )


def test_the_version_of_a_host_does_nothing_to_a_terminal(host: Controller) -> None:
    assert "1\\x1b]0;x\\x07" in _printed("hosts")


def test_the_command_of_a_session_does_nothing_to_a_terminal(
    host: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_session(host, state=SessionState.RUNNING, command="sleep \x1b[2J\u202e1")

    async def ended(sessions: list[Any], *, actor: str) -> list[str]:
        return [""] * len(sessions)

    monkeypatch.setattr(services, "sessions_terminate", ended)
    assert "sleep \\x1b[2J\\u202e1" in _printed("end_sessions", "acme")


def test_the_name_of_a_token_does_nothing_to_a_terminal(host: Controller) -> None:
    api_token_create(project=host.project, name="agent\x1b[2J")
    with pytest.raises(CommandError, match=r"agent\\x1b\[2J"):
        _printed("revoke", "nothing")
    suspension.suspend(made_at=timezone.now(), release="1", actor="cli:ada")
    assert "acme: agent\\x1b[2J (" in _printed("confirm_restore")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["end_sessions", "acme"], "no session was active\n"),
        (["end_sessions", "acme", "--controller", "web-1"], "no session was active\n"),
        (["acknowledge_marks", "--reason", "known"], "no mark had to be acknowledged\n"),
    ],
)
def test_a_command_that_found_nothing_to_do_says_so(
    host: Controller, arguments: list[str], said: str
) -> None:
    assert _printed(*arguments) == said
