"""Every result of every tool has the published form, and its fields agree with each other."""

import asyncio
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import jsonschema
import pytest

from controller_client.protocol.messages import FileChunk, ReadFile, SendInput
from controller_client.protocol.session_state import SessionState
from projects.accounts.authentication import SCOPES, Caller
from projects.models import CommandSession, Controller
from projects.monitors import read as monitor_reads
from projects.monitors import start as monitor_starts
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.storage.access import in_database
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)

_KIND = CommandSession.Kind
# One call of each tool, and the ends of a session, make results of every form.
_ENDS: tuple[tuple[SessionState, dict[str, Any]], ...] = (
    (SessionState.PENDING, {}),
    (SessionState.RUNNING, {"pid": 7}),
    (SessionState.EXITED, {"exit_code": 3, "end_reason": "exited", "survivors": ["a[1]"]}),
    (SessionState.TERMINATED, {"signal": "SIGKILL", "end_reason": "terminated", "ended_by": "x"}),
    (SessionState.TIMED_OUT, {"end_reason": "timed_out", "ended_by": "lifetime"}),
    (SessionState.LOST, {"end_reason": "lost", "ended_by": "host"}),
    (SessionState.START_FAILED, {"failure_code": "PROGRAM_NOT_FOUND", "failure_message": "no"}),
    (SessionState.EXPIRED, {"failure_code": "EXPIRED", "failure_message": "late"}),
)


@pytest.fixture(autouse=True)
def a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """The log of the host has one line, and was rotated before it."""

    async def look(_host: Any, question: ReadFile) -> FileChunk:
        is_new = question.max_bytes and not question.position
        rotation: dict[str, Any] = {"reset": "rotated", "gap": "hole", "gap_bytes": 2}
        return FileChunk(
            reply_to=question.id,
            identity="1:2",
            position=question.position or 0,
            data=b"error: one\n" if is_new else b"",
            **(rotation if is_new else {}),
        )

    monkeypatch.setattr(monitor_starts, "read_file", look)
    monkeypatch.setattr(monitor_reads, "read_file", look)


def _unpublished(value: Any, schema: dict[str, Any], at: str = "") -> Iterator[str]:
    """The members of a result that its schema does not name."""
    for part in schema.get("anyOf", ()):
        if jsonschema.Draft202012Validator(part).is_valid(value):
            yield from _unpublished(value, part, at)
    if isinstance(value, dict) and "properties" in schema:
        for name, member in value.items():
            if name in schema["properties"]:
                yield from _unpublished(member, schema["properties"][name], f"{at}.{name}")
            else:
                yield f"{at}.{name}"
    if isinstance(value, list):
        for member in value:
            yield from _unpublished(member, schema.get("items", {}), f"{at}[]")


class _Calls:
    """Calls of tools whose results are looked at."""

    def __init__(self, caller: Caller) -> None:
        self.caller, self.called = caller, set[str]()

    async def __call__(self, name: str, **arguments: Any) -> dict[str, Any]:
        tool = tool_named(name)
        outcome = await tool.call(arguments, self.caller)
        assert not outcome.is_error, (name, outcome.body)
        self.called.add(name)
        validator = jsonschema.Draft202012Validator(tool.output_schema)
        assert [error.message for error in validator.iter_errors(outcome.body)] == [], name
        assert list(_unpublished(outcome.body, tool.output_schema)) == [], name
        _check_terminal(outcome.body)
        return outcome.body


def _check_terminal(body: dict[str, Any]) -> None:
    """The fields of a terminal's result agree with each other."""
    if "is_alive" not in body:
        return
    assert body["is_alive"] == (body["state"] != "exited")
    assert (body["prompt"] is not None) == (body["state"] == "awaiting_input")
    assert body["truncated"] == (body["omitted_bytes"] > 0) == (body["omitted_offset"] is not None)
    assert 0 <= body["offset"] <= body["next_offset"] <= body["total_bytes"]
    assert body["hint"]
    if body["is_alive"]:
        of_the_end = ("exit_code", "signal", "end_reason", "survivors")
        assert [body[name] for name in of_the_end] == [None] * 4
    else:
        assert body["end_reason"]
        assert (body["activity"], body.get("expires_at")) == ("", None)


def _ended(host: Controller, kind: str, state: SessionState, fields: dict[str, Any]) -> str:
    mode = "pty" if kind == _KIND.INTERACTIVE else "pipe"
    session = make_session(host, state, kind=kind, io_mode=mode, **fields)
    output_log.append([NewChunk(session.id, "stdout", 0, 0, b"warning: \xc3\xa9\x1b[0m\r\n")])
    CommandSession.objects.filter(id=session.id).update(stdout_next_offset=17)
    return str(session.id)


@pytest.mark.parametrize(("state", "fields"), _ENDS, ids=lambda value: str(value)[:20])
async def test_a_session_is_shown_in_the_published_form_in_every_state(
    controller: Controller, state: SessionState, fields: dict[str, Any]
) -> None:
    call = _Calls(Caller(controller.project_id, "token:x", frozenset(SCOPES)))
    ids = {kind: await in_database(_ended, controller, kind.value, state, fields) for kind in _KIND}
    is_over = state not in {SessionState.PENDING, SessionState.RUNNING}
    for session in ids.values():
        details = await call(
            "get_session", session_id=session, digest=True, ordered_bytes=100, digest_from=3
        )
        assert (details["lifecycle"], details["state"] == "exited") == (state.value, is_over)
        assert (details["end_reason"] is not None, details["ended_by"] or "")[0] == is_over
        for view in ("text", "raw", "screen"):
            read = await call("read_session_output", session_id=session, view=view)
            assert ("output_base64" in read, "cursor" in read) == (view == "raw", view == "screen")
    for view in ("text", "screen"):
        polled = await call(
            "send_command_input", session_id=ids[_KIND.INTERACTIVE], wait_seconds=0, view=view
        )
        assert ("cursor" in polled) == (view == "screen")
    unread = await call("read_output", sessionId=ids[_KIND.BACKGROUND])
    assert (unread["stdout"], unread["isActive"]) == ("warning: \u00e9\n", not is_over)
    assert ("endReason" in unread) == is_over
    assert (unread.get("error") is None) == (state == SessionState.EXITED or not is_over)
    job = await call("query_command_status", token=ids[_KIND.JOB])
    expected = {SessionState.PENDING: "pending", SessionState.RUNNING: "running"}
    assert job["status"] == expected.get(state, "completed")
    assert ("execution_time" in job) == is_over
    assert ("error" in job) == ("error_code" in job)
    assert (await call("query_command_status", token="x"))["status"] == "not_found"
    listed = await call("list_sessions", active_only=not is_over)
    assert {session["session_id"] for session in listed["sessions"]} == set(ids.values())


async def test_every_tool_answers_in_the_published_form(
    controller: Controller, host: ActingHost
) -> None:
    def answer(message: SendInput) -> bytes:
        host.kind = "secret"
        return message.data + b"Continue? [Y/n] "

    host.on_start, host.on_input = (lambda _: b"x" * 900 + b"\r\n1) a\r\n2) b\r\n? "), answer
    call = _Calls(Caller(controller.project_id, "token:x", frozenset(SCOPES)))
    started = await call(
        "start_interactive_command", command="ask", max_output_bytes=256, wait_seconds=20
    )
    assert started["truncated"]
    terminal = started["session_id"]
    rest = await call(
        "read_session_output", session_id=terminal, offset=started["omitted_offset"], max_bytes=256
    )
    assert rest["output"].startswith("x")
    answered = await call("send_command_input", session_id=terminal, input_text="1\n")
    assert answered["prompt"]["text"].endswith("[Y/n] ")
    await call("resize_session", session_id=terminal, rows=9, cols=9)
    background = (await call("start_command", command="serve", timeout=20_000))["sessionId"]
    assert (await call("write_input", sessionId=background, input="x"))["success"]
    assert "hint" not in await call("stop_command", sessionId=background, signal="HUP")
    assert (await call("stop_command", sessionId=background))["success"]
    assert not (await call("stop_command", sessionId=background))["success"]
    await call("run_command", command="make", use_pty=True)
    ended = await call("send_command_input", session_id=terminal, terminate=True)
    assert ended["end_reason"] == "terminated"
    sent = len(host.commands)
    one_shot = asyncio.create_task(call("execute_command", command="date", view="raw"))
    await await_until(lambda: len(host.commands) > sent, 30, "the command to reach the host")
    await host.say(host.result(host.commands[-1].session_id, exit_code=2))
    assert (await one_shot)["return_code"] == 2
    monitor = {"session_id": str(uuid4())}
    await call("start_session_monitor", **monitor, session_type="file", log_file="/a.log")
    news = await call("get_session_updates", **monitor, request_id=str(uuid4()))
    assert (news["new_content"], news["reset_reason"], news["lost_bytes"]) == (
        "error: one\n",
        "rotated",
        2,
    )
    nothing = await call("get_session_updates", **monitor, view="digest")
    assert (nothing["new_content"], nothing["digest"]["error_count"]) == ("", 0)
    found = await call("search_session_output", pattern="(?i)ERROR|x", max_results=1)
    assert found["stopped_by"] == "results"
    await call("stop_session_monitor", **monitor, save_log=True)
    for name in ("list_controllers", "list_sessions", "list_session_monitors"):
        await call(name)
    in_every_state = {"get_session", "read_output", "query_command_status"}
    assert {tool.name for tool in ALL_TOOLS} - call.called == in_every_state
