"""Rows for tests of the server: controllers, sessions in any state, and the HELLO of a host."""

from typing import Any, Literal

from controller_client.protocol.messages import Hello, SessionSummary, StreamPosition
from controller_client.protocol.session_state import SessionState
from controller_client.protocol.values import PROVES_READERS
from projects.models import CommandSession, Controller, Project


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
