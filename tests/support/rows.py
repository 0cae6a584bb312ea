"""Rows for tests of the server: controllers, sessions in any state, and the HELLO of a host."""

import json
from typing import Any, Literal
from uuid import uuid4

from controller_client.protocol.messages import Hello, SessionSummary, StreamPosition
from controller_client.protocol.session_state import SessionState
from controller_client.protocol.values import PROVES_READERS
from projects.models import Approval, CommandSession, Controller, Project
from projects.storage.sealing import seal


def make_controller(
    name: str = "host", *, project: Project | None = None, **fields: Any
) -> Controller:
    """An enrolled controller, in a project of its own unless one is given."""
    project = project or Project.objects.create(name=f"project-of-{name}")
    return Controller.objects.create(
        project=project, name=name, **{"capabilities": ["pty", PROVES_READERS], **fields}
    )


def make_session(
    controller: Controller, state: SessionState = SessionState.RUNNING, **fields: Any
) -> CommandSession:
    """A session of ``controller`` in ``state``."""
    return CommandSession.objects.create(
        **{
            "project_id": controller.project_id,
            "controller": controller,
            "command": "cat",
            "state": state,
            **fields,
        }
    )


def make_hello(*sessions: SessionSummary, **fields: Any) -> Hello:
    """HELLO of a daemon on a host that was booted once."""
    return Hello(
        **{
            "versions": [1],
            "client_version": "1",
            "instance_id": "instance-1",
            "boot_id": "boot-1",
            "os": "linux",
            "platform": "test",
            "hostname": "host",
            "capabilities": ["pty"],
            "last_cmd_seq": 0,
            "sessions": list(sessions),
            **fields,
        }
    )


def make_summary(
    session: CommandSession,
    state: Literal["running", "done", "lost"] = "running",
    next_offset: int = 0,
) -> SessionSummary:
    """A session as its host lists it in HELLO."""
    position = StreamPosition(stream="stdout", first_offset=0, next_offset=next_offset)
    return SessionSummary(
        session_id=str(session.id), state=state, streams=[position], input_seq=0, pid=123
    )


def make_approval(
    project: Project, tool: str = "execute_command", arguments: Any = None, **fields: Any
) -> Approval:
    """A question about a call that nobody has answered."""
    return Approval.objects.create(
        **{
            "project": project,
            "request_id": uuid4(),
            "asked_by": "token:agent",
            "tool": tool,
            "sealed_arguments": seal(json.dumps(arguments or {}).encode()),
            "risk": "unclear",
            **fields,
        }
    )


def of_run(run_id: Any, step: int = 1, call: int = 0) -> dict[str, Any]:
    """The columns of a question that say which call of a run it is about."""
    origin = {"run": str(run_id), "step": step, "call": call}
    return {"asked_by": f"agent:{run_id}", "origin": origin}
