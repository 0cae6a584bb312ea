"""Who has no right sees nothing in a browser, and a right that is taken away closes the view."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Page, browser
from tests.support.management import manage_well
from tests.support.mcp.client import connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

PASSWORD = "An0ther-long-one"
_MAKE_ANN = f"""
from django.contrib.auth.models import Group, Permission, User
from projects.models import Project
ann = User.objects.create_user("ann", password="{PASSWORD}", is_staff=True)
ann.groups.set(Group.objects.filter(name__in=["observer", "auditor"]))
ann.user_permissions.set(Permission.objects.filter(codename="take_over_session"))
Project.objects.get(name="away").members.add(ann)
"""
_JOIN = (
    "INSERT INTO projects_project_members (project_id, user_id) SELECT p.id, u.id "
    "FROM projects_project p, auth_user u WHERE p.name = 'first' AND u.username = 'ann'"
)
_LEAVE = (
    "DELETE FROM projects_project_members WHERE project_id IN "
    "(SELECT id FROM projects_project WHERE name = 'first')"
)
# A page's own script could send any of these.
_BY_HAND = """
window.heard = [];
window.byHand = new WebSocket("ws://" + location.host + "/ws/console/");
byHand.onmessage = ({data}) => heard.push(JSON.parse(data));
byHand.onopen = () => { for (const message of %s) byHand.send(JSON.stringify(message)); };
"""


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        manage_well(stack, "shell", "-v", "0", "-c", _MAKE_ANN)
        yield stack


@pytest.fixture
def ann(own_stack: Stack) -> Iterator[Page]:
    """The tab of a person who belongs to another project."""
    with browser() as tab:
        tab.open(f"http://127.0.0.1:{own_stack.port}/login/")
        tab.fill("#id_username", "ann")
        tab.fill("#id_password", PASSWORD)
        tab.click("input[type=submit]")
        yield tab


def _answers(page: Page, *messages: dict[str, Any]) -> list[Any]:
    """What the server answers to messages that no page of ours sends."""
    page.evaluate(_BY_HAND % json.dumps(messages))
    wait_until(lambda: page.evaluate(f"heard.length >= {len(messages)}"), 60, "the answers")
    return list(page.evaluate("heard"))


async def test_another_project_is_neither_seen_nor_touched(own_stack: Stack, ann: Page) -> None:
    console = f"http://127.0.0.1:{own_stack.port}"
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal("bash -c 'echo needle; read -p Go? x; sleep 100'") as terminal,
    ):
        session = f"/sessions/{terminal.session_id}/"
        ann.open(f"{console}/")
        ann.await_text("No session is active.")
        for path in ("/hosts/", "/timeline/", "/search/?q=needle", session, f"{session}replay/"):
            ann.open(console + path)
            shown = ann.text("main") or ann.text()
            assert not any(word in shown for word in ("Go?", "bash -c", "first")), path
        ann.open(f"{console}/hosts/")
        heard = _answers(
            ann,
            {"type": "watch_session", "session_id": terminal.session_id, "offset": 0},
            {"type": "take", "insists": True},
            {"type": "ask"},
            {"type": "input", "keyboard": terminal.session_id, "seq": 1, "text": "x\r"},
            {"type": "watch_board"},
        )
        assert [each["code"] for each in heard if each["type"] == "refused"] == [
            *("SESSION_NOT_FOUND", "FORBIDDEN", "FORBIDDEN", "FORBIDDEN")
        ]
        assert "needle" not in json.dumps(heard)
        assert heard[-1]["rows"] == []

        own_stack.database.execute(_JOIN)
        ann.open(console + session)
        ann.await_text("waits for a line", "#state")
        ann.await_text("Go?", "#prompt")
        own_stack.database.execute(_LEAVE)
        ann.await_text("The live view has ended: you may not see this session", "#connection")
        await terminal.send("y\n", wait_seconds=0)
        assert "Go?y" not in ann.text("#screen")
