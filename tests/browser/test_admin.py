"""The admin in a browser: an operator logs in, reads hostile output, and terminates a session."""

import shlex
import uuid
from collections.abc import Iterator

import pytest

from tests.support.browser import Page
from tests.support.mcp.client import connect
from tests.support.stack import Stack, running_stack

HOSTILE = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
BIDI = "\u202egnp.exe"


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


async def test_a_hostile_transcript_is_text_and_two_clicks_terminate_a_session(
    own_stack: Stack, page: Page
) -> None:
    sessions = f"http://127.0.0.1:{own_stack.port}/admin/projects/commandsession/"
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        script = own_stack.root / "hostile.sh"
        printed = (
            f"printf '%s\\n' {shlex.quote(HOSTILE)} {BIDI}\n"
            "printf '\\033[31mred\\033[0m \\033]0;owned\\007'\n"
        )
        script.write_text(printed + "read -p 'Go on? ' answer\n")
        async with caller.terminal(f"bash {script} {shlex.quote(HOSTILE)} {BIDI}") as terminal:
            assert terminal.kind == "line"
            page.open(sessions)
            page.keep_picture("sessions")
            listed = page.text("#result_list")
            assert "<script>" in listed
            assert "RUNNING: waits for input (line, kernel)" in listed
            assert "\u202e" not in listed

            page.open(f"{sessions}{terminal.session_id}/change/")
            page.keep_picture("session")
            shown = page.text(".holdline-transcript pre")
            assert HOSTILE in shown
            assert "red Go on? " in shown
            assert "\\u{202e}gnp.exe" in shown
            assert "owned" not in page.evaluate("document.title")
            assert page.errors == []

            page.click(".holdline-terminate button")
            page.keep_picture("terminate")
            assert "killed with its whole process tree" in page.text("#content")
            page.click("input[type=submit][value='Yes, terminate']")
            page.keep_picture("terminated")
            assert "Terminated: bash" in page.text(".messagelist")
            result = await terminal.until("exited")
            assert result["end_reason"] == "terminated"

        page.open(f"{sessions}{terminal.session_id}/change/")
        assert "terminated by admin:admin" in page.text("#content")
        assert page.text(".holdline-terminate") == ""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("controller", "Linux"),
        ("project", "first"),
        ("auditevent", "bootstrap"),
        ("apitoken", "session:read"),
        ("controllercredential", "first"),
    ],
)
def test_every_list_shows_its_rows(own_stack: Stack, page: Page, place: str, expected: str) -> None:
    page.open(f"http://127.0.0.1:{own_stack.port}/admin/projects/{place}/")
    page.keep_picture(place)
    assert expected in page.text("#result_list")
    assert page.errors == []


async def test_a_monitor_page_shows_its_content_and_stopping_keeps_the_log(
    own_stack: Stack, page: Page
) -> None:
    monitors = f"http://127.0.0.1:{own_stack.port}/admin/projects/monitor/"
    log = own_stack.log_root / f"app {BIDI}.log"
    log.write_text(f"first line\n{HOSTILE}\n\x1b[31mred\n")
    new = {
        "session_id": str(uuid.uuid4()),
        "session_type": "file",
        "log_file": str(log),
        "metadata": {"host": HOSTILE},
    }
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        await caller.call("start_session_monitor", **new)
        await caller.call("get_session_updates", session_id=new["session_id"])
        page.open(f"{monitors}?q={new['session_id']}")
        page.keep_picture("monitors")
        listed = page.text("#result_list")
        assert "Active" in listed
        assert "\\u202egnp.exe" in listed

        page.click("#result_list tbody th a")
        page.keep_picture("monitor")
        shown = page.text("#content")
        assert "first line" in shown
        assert HOSTILE in shown
        assert "\\x1b[31mred" in shown
        assert page.errors == []
        assert "owned" not in page.evaluate("document.title")

        page.open(f"{monitors}?q={new['session_id']}")
        page.evaluate("document.querySelector('input.action-select').click()")
        page.evaluate("document.querySelector('select[name=action]').value = 'stop'")
        page.click("button[name=index]")
        page.keep_picture("monitor-stopped")
        assert "Monitors stopped: 1 on host." in page.text(".messagelist")
        assert (await caller.refusal("get_session_updates", session_id=new["session_id"]))[
            "code"
        ] == "SESSION_NOT_FOUND"
    assert log.exists()
