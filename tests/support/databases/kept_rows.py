"""Rows that stay when sessions, monitors and runs are over: as many as a test wants to have."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import uuid4

from django.utils import timezone

from agent.models import AgentRun
from projects.audit.log import SERVER
from projects.audit.marks import REPEAT_ACTION
from projects.models import (
    ActionRequest,
    AttentionEvent,
    AttentionMessage,
    AttentionTarget,
    AuditEvent,
    AuditMark,
    CommandSession,
    Controller,
    ControllerCommand,
    Monitor,
    OutputChunk,
    RateMeter,
    ReadCursor,
)


def keep_ended(controller: Controller, numbers: range) -> None:
    """Add an ended session for each number with all it leaves, and as much of all else that stays.

    All of it ended at least two hours ago. No command or audit row has one of the numbers yet.
    """
    ended = timezone.now() - timedelta(hours=2)
    sessions = CommandSession.objects.bulk_create(_sessions(controller, numbers, ended))
    host = {"controller": controller, "type": "START_INTERACTIVE_CMD", "sent_epoch": 1}
    project = controller.project_id
    ControllerCommand.objects.bulk_create(
        ControllerCommand(**host, session=session, seq=number, settled_at=ended)
        for session, number in zip(sessions, numbers, strict=True)
    )
    Controller.objects.filter(id=controller.id).update(last_command_seq=numbers[-1])
    OutputChunk.objects.bulk_create(
        OutputChunk(session=session, stream="stdout", offset=0, size=3, seq=1, data=b"abc")
        for session in sessions
    )
    ActionRequest.objects.bulk_create(
        ActionRequest(project_id=project, request_id=uuid4(), action="start", session=session)
        for session in sessions
    )
    ReadCursor.objects.bulk_create(
        ReadCursor(session=session, caller="token:x") for session in sessions
    )
    AuditEvent.objects.bulk_create(_events(controller, sessions, numbers))
    AuditMark.objects.bulk_create(
        AuditMark(project_id=project, kind="head", seq=number, hash="h", signature="s")
        for number in numbers
    )
    Monitor.objects.bulk_create(_monitors(controller, numbers, ended))
    RateMeter.objects.bulk_create(RateMeter(key=f"key {number}", free_at=9e9) for number in numbers)
    AgentRun.objects.bulk_create(_runs(controller, numbers, ended))
    _keep_attention(controller, sessions, ended)


def _keep_attention(
    controller: Controller, sessions: list[CommandSession], ended: datetime
) -> None:
    project, times = controller.project_id, {"raised_at": ended, "resolved_at": ended}
    AttentionEvent.objects.bulk_create(
        AttentionEvent(
            cause=str(uuid4()), kind="session_lost", project_id=project, session=session, **times
        )
        for session in sessions
    )
    new = {"way": "webhook", "place": "x", "sealed_address": b""}
    target, _ = AttentionTarget.objects.get_or_create(project_id=project, name="ops", defaults=new)
    AttentionMessage.objects.bulk_create(
        AttentionMessage(
            target=target, kind="test", event_count=1, body="{}", created_at=ended, sent_at=ended
        )
        for _ in sessions
    )


def _sessions(controller: Controller, numbers: range, ended: datetime) -> Iterator[CommandSession]:
    for number in numbers:
        moment = ended - timedelta(seconds=number)
        yield CommandSession(
            project_id=controller.project_id,
            controller=controller,
            command="cat",
            state="EXITED",
            created_at=moment,
            started_at=moment,
            ended_at=moment,
            stdout_next_offset=3,
        )


def _events(
    controller: Controller, sessions: list[CommandSession], numbers: range
) -> Iterator[AuditEvent]:
    for session, number in zip(sessions, numbers, strict=True):
        yield AuditEvent(
            project_id=controller.project_id,
            controller_id=controller.id,
            session_id=session.id,
            actor="token:x",
            action="session.start",
            seq=number,
            hash="h",
        )
        yield AuditEvent(
            project_id=SERVER,
            actor="server",
            action=REPEAT_ACTION,
            detail={"heads": {str(controller.project_id): [number, "h"]}},
            seq=number,
            hash="h",
        )


def _monitors(controller: Controller, numbers: range, ended: datetime) -> Iterator[Monitor]:
    for number in numbers:
        yield Monitor(
            project_id=controller.project_id,
            controller=controller,
            session_id=uuid4(),
            session_type="file",
            log_file="/var/log/x",
            status="stopped",
            file_identity="1:2",
            started_at=ended - timedelta(seconds=number),
            stopped_at=ended,
        )


def _runs(controller: Controller, numbers: range, ended: datetime) -> Iterator[AgentRun]:
    for number in numbers:
        yield AgentRun(
            project_id=controller.project_id,
            task="look",
            model="scripted:demo",
            approvals="auto",
            state="finished",
            submitted_by="x",
            max_steps=1,
            max_tokens=1,
            max_cost_cents=1,
            max_run_seconds=1.0,
            output_bytes=1,
            created_at=ended - timedelta(seconds=number),
            ended_at=ended,
        )
