"""What a person approved is carried out once, and only on what they saw."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from controller_client.protocol.messages import DeleteFile, FileDeleted
from projects.accounts.authentication import AGENT_SCOPES, Caller
from projects.accounts.permits import Permit
from projects.models import (
    Approval,
    AttentionEvent,
    CommandSession,
    Controller,
    ControllerCommand,
    Monitor,
    Project,
)
from projects.monitors import stop
from projects.sessions.approvals.answering import approval_answer, approvals_forget
from projects.sessions.idempotency import Done, Request
from projects.storage.access import in_database
from projects.tools import holding
from projects.tools.registry import tool_named
from projects.upkeep import retention
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

RUN, TYPE = "run_command", "send_command_input"
PROMPT = {
    "terminal_state": "awaiting_input",
    "terminal_kind": "line",
    "terminal_prompt": "Drop it? ",
}
NO_PROMPT = {"terminal_state": "running", "terminal_kind": "", "terminal_prompt": ""}


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for an answer."""
    monkeypatch.setattr(holding, "WAIT_SECONDS", 0.0)


@pytest.fixture
def caller(controller: Controller) -> Caller:
    """A caller that asks about everything, on a host that is there."""
    Controller.objects.update(lease_expires_at=timezone.now() + timedelta(hours=2))
    scopes = frozenset(AGENT_SCOPES)
    return Caller(controller.project_id, "token:mcp", scopes, token_id=uuid4(), approvals="ask-all")


async def _call(caller: Caller, tool: str, **given: Any) -> dict[str, Any]:
    return dict((await tool_named(tool).call(given, caller)).body)


async def _approve() -> None:
    def answered() -> bool:
        newest = Approval.objects.latest("id").id
        return approval_answer(approval_id=newest, is_approved=True, actor="admin:ada")

    assert await in_database(answered)


async def _approved(caller: Caller, tool: str, **given: Any) -> dict[str, Any]:
    """The answer to a call that a person was asked about and approved."""
    assert (await _call(caller, tool, **given))["code"] == "APPROVAL_PENDING"
    await _approve()
    return await _call(caller, tool, **given)


def _end_sessions(state: str) -> None:
    Project.objects.update(session_retention_seconds=3600)
    long_ago = timezone.now() - timedelta(seconds=3700)
    CommandSession.objects.update(state=state, ended_at=long_ago, slot=None)


def _age_approvals() -> None:
    long_ago = timezone.now() - timedelta(seconds=61)
    Approval.objects.update(answered_at=long_ago, used_at=long_ago)


def _started() -> int:
    return ControllerCommand.objects.filter(type="RUN_COMMAND").count()


# ---- once ----------------------------------------------------------------------------------------


async def test_an_approved_start_runs_once_after_its_session_is_removed(caller: Caller) -> None:
    named = {"command": "rm x", "request_id": str(uuid4())}
    first = await _approved(caller, RUN, **named)
    assert await _call(caller, RUN, **named) == first
    await in_database(_end_sessions, "COMPLETED")
    await retention.expire()
    again = await _call(caller, RUN, **named)
    assert again["code"] == "CHANGED_SINCE_APPROVAL"
    assert "carried out" in again["error"]
    assert await in_database(_started) == 0


@pytest.mark.parametrize("of_project", [None, 3600])
async def test_the_question_about_a_start_outlives_its_session(
    caller: Caller, settings: Any, of_project: int | None
) -> None:
    settings.SESSION_RETENTION_SECONDS = 60
    named = {"command": "rm x", "request_id": str(uuid4())}
    first = await _approved(caller, RUN, **named)
    await in_database(_age_approvals)
    assert await in_database(approvals_forget) == 0
    assert await _call(caller, RUN, **named) == first
    await in_database(_end_sessions, "COMPLETED")
    await in_database(Project.objects.update, session_retention_seconds=of_project)
    await retention.expire()
    assert await in_database(approvals_forget) == 0
    assert (await _call(caller, RUN, **named))["code"] == "CHANGED_SINCE_APPROVAL"
    await in_database(_age_approvals)
    assert await in_database(approvals_forget) == 1


async def test_a_start_without_an_id_asks_again_after_it_is_removed(caller: Caller) -> None:
    assert "code" not in await _approved(caller, RUN, command="rm x")
    await in_database(_end_sessions, "COMPLETED")
    await retention.expire()
    assert (await _call(caller, RUN, command="rm x"))["code"] == "APPROVAL_PENDING"
    assert await in_database(Approval.objects.count) == 2
    assert await in_database(_started) == 0


async def test_an_approved_start_that_began_nothing_may_be_repeated(caller: Caller) -> None:
    named = {"command": "rm x", "request_id": str(uuid4())}
    first = await _approved(caller, RUN, **named)
    await in_database(_end_sessions, "EXPIRED")
    again = await _call(caller, RUN, **named)
    assert again["token"] != first["token"]
    assert (await _call(caller, RUN, **named))["token"] == again["token"]


async def test_a_call_that_was_let_pass_before_the_removal_runs_nothing(caller: Caller) -> None:
    """The permit of a call that is on its way is checked where the call is carried out."""
    named = {"command": "rm x", "request_id": str(uuid4())}
    await _approved(caller, RUN, **named)
    asked = await in_database(Approval.objects.get)
    await in_database(_end_sessions, "COMPLETED")
    await retention.expire()
    permit = Permit(asked.id, asked.controller_id)
    late = await _call(caller.cleared(permit), RUN, **named)
    assert late["code"] == "CHANGED_SINCE_APPROVAL"


async def test_of_two_repeats_at_once_both_get_what_the_first_one_did(
    caller: Caller, controller: Controller, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await in_database(lambda: make_session(controller, io_mode="pty", **NO_PROMPT))
    given = {"session_id": str(session.id), "input_text": "y\n", "wait_seconds": 0}
    named = {**given, "request_id": str(uuid4())}
    assert "code" not in await _approved(caller, TYPE, **named)
    looks: list[Request] = []

    def earlier(request: Request) -> Done | None:
        """What the other call did is committed after the first look."""
        looks.append(request)
        return None if len(looks) == 1 else found(request)

    found = Request.earlier
    monkeypatch.setattr(Request, "earlier", earlier)
    assert "code" not in await _call(caller, TYPE, **named)
    assert len(looks) == 2
    assert await in_database(ControllerCommand.objects.filter(type="SEND_INPUT").count) == 1


# ---- inputs --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("seen", "found", "is_typed"),
    [
        (NO_PROMPT, PROMPT, False),
        (PROMPT, NO_PROMPT, False),
        (NO_PROMPT, NO_PROMPT, True),
        (PROMPT, PROMPT, True),
    ],
)
async def test_an_input_is_bound_to_whether_the_program_waits_at_a_prompt(
    caller: Caller, controller: Controller, seen: Any, found: Any, is_typed: bool
) -> None:
    session = await in_database(lambda: make_session(controller, io_mode="pty", **seen))
    given = {"session_id": str(session.id), "input_text": "y\n", "wait_seconds": 0}
    assert (await _call(caller, TYPE, **given))["code"] == "APPROVAL_PENDING"
    await _approve()
    await in_database(lambda: CommandSession.objects.update(**found))
    answer = await _call(caller, TYPE, **given)
    assert answer.get("code") == (None if is_typed else "CHANGED_SINCE_APPROVAL")
    typed = ControllerCommand.objects.filter(type="SEND_INPUT")
    assert await in_database(typed.count) == int(is_typed)


# ---- a person ------------------------------------------------------------------------------------

SUDO = {"terminal_state": "awaiting_input", "terminal_kind": "secret", "terminal_prompt": "[sudo] "}
VAULT = {**SUDO, "terminal_prompt": "Vault master key: "}
ANSWERED = {"input_seq": 1, "terminal_input_seq": 1}
LATER = {"terminal_evidence": "kernel", "terminal_offset": 50, "stdout_next_offset": 50}


async def _asking(controller: Controller) -> dict[str, Any]:
    """The call that asks a person, in a session that asks for a secret."""
    session = await in_database(lambda: make_session(controller, io_mode="pty", **SUDO))
    given = {"session_id": str(session.id), "ask_person": "the password", "wait_seconds": 0}
    return {**given, "request_id": str(uuid4())}


def _move(**changes: Any) -> None:
    CommandSession.objects.update(**changes)


async def test_an_approved_call_asks_a_person_at_one_prompt_only(
    caller: Caller, controller: Controller
) -> None:
    given = await _asking(controller)
    assert (await _approved(caller, TYPE, **given))["code"] == "PERSON_PENDING"
    # A repeat waits on, and says under which id the next one does.
    again = await _call(caller, TYPE, **given)
    assert again["code"] == "PERSON_PENDING"
    assert given["request_id"] in again["hint"]
    for later in ({**VAULT, **LATER}, {**VAULT, **LATER, **ANSWERED}):
        await in_database(_move, **later)
        assert "code" not in await _call(caller, TYPE, **given)
        unnamed = {name: value for name, value in given.items() if name != "request_id"}
        assert (await _call(caller, TYPE, **unnamed))["code"] == "APPROVAL_PENDING"
    assert await in_database(AttentionEvent.objects.filter(kind="secret_wanted").count) == 1


@pytest.mark.parametrize("later", [{**VAULT, **LATER}, {**SUDO, **ANSWERED}, NO_PROMPT])
async def test_no_person_is_asked_at_another_prompt_than_the_approved_one(
    caller: Caller, controller: Controller, later: dict[str, Any]
) -> None:
    given = await _asking(controller)
    assert (await _call(caller, TYPE, **given))["code"] == "APPROVAL_PENDING"
    await _approve()
    await in_database(_move, **later)
    assert (await _call(caller, TYPE, **given))["code"] == "CHANGED_SINCE_APPROVAL"
    assert not await in_database(AttentionEvent.objects.filter(kind="secret_wanted").exists)


async def test_a_repeat_after_a_day_of_a_call_that_asked_is_not_expired(
    caller: Caller, controller: Controller
) -> None:
    given = await _asking(controller)
    assert (await _approved(caller, TYPE, **given))["code"] == "PERSON_PENDING"
    a_day_ago = timezone.now() - timedelta(days=1)
    await in_database(lambda: Approval.objects.update(expires_at=a_day_ago))
    assert (await _call(caller, TYPE, **given))["code"] == "PERSON_PENDING"


# ---- monitors ------------------------------------------------------------------------------------

STOP, MONITOR = "stop_session_monitor", uuid4()


@pytest.fixture
def deleted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The logs that hosts were told to delete."""
    paths: list[str] = []

    async def delete_file(controller_id: UUID, question: DeleteFile) -> FileDeleted:
        del controller_id
        paths.append(question.path)
        return FileDeleted(reply_to="")

    monkeypatch.setattr(stop, "delete_file", delete_file)
    return paths


def _follow(host: str, log_file: str) -> None:
    """Let the id be that of a monitor of this log, as its caller can by a stop and a start."""
    Monitor.objects.update(status=Monitor.Status.STOPPED)
    controller = Controller.objects.get(name=host)
    Monitor.objects.create(
        project_id=controller.project_id,
        controller=controller,
        session_id=MONITOR,
        session_type="file",
        log_file=log_file,
        started_by="token:mcp",
    )


@pytest.mark.parametrize("save_log", [False, True])
@pytest.mark.parametrize("seen", [("", ""), ("host", "/logs/mine.log"), ("prod", "/logs/x.log")])
async def test_an_approved_stop_of_a_monitor_is_bound_to_its_host_and_log(
    caller: Caller,
    controller: Controller,
    deleted: list[str],
    seen: tuple[str, str],
    save_log: bool,
) -> None:
    await in_database(lambda: make_controller("prod", project=controller.project))
    await in_database(lambda: Controller.objects.filter(id=controller.id).update(name="host"))
    if all(seen):
        await in_database(_follow, *seen)
    given = {"session_id": str(MONITOR), "save_log": save_log}
    assert (await _call(caller, STOP, **given))["code"] == "APPROVAL_PENDING"
    await _approve()
    for other in (("prod", "/logs/mine.log"), ("host", "/logs/x.log")):
        await in_database(_follow, *other)
        assert (await _call(caller, STOP, **given))["code"] == "CHANGED_SINCE_APPROVAL"
    assert deleted == []
    if all(seen):
        await in_database(_follow, *seen)
        assert (await _call(caller, STOP, **given))["status"] == "stopped"
        assert deleted == ([] if save_log else [seen[1]])
