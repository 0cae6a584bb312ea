"""A batch records more than output: the host's times, prompts, inputs, sizes and the end."""

from typing import Any

import pytest
from django.utils import timezone

from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    Gap,
    HostTime,
    InputAck,
    InteractiveCmdDone,
    InteractiveOutput,
    Resize,
    SendInput,
    TerminalReport,
    TerminateCmd,
)
from projects.link.inbound.batch import SessionMessage, commit_batch
from projects.models import CommandSession, Controller, OutputChunk, SessionEvent
from projects.sessions import outbox
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def controller() -> Controller:
    return make_controller(epoch=3)


@pytest.fixture
def session(controller: Controller) -> CommandSession:
    return make_session(controller, started_at=timezone.now())


def _at(clock: float) -> HostTime:
    return HostTime(wall=1_763_850_000 + clock, clock=clock)


def _commit(controller: Controller, *messages: SessionMessage) -> None:
    result = commit_batch(controller.id, 3, messages)
    assert result.error is None


def _output(session: CommandSession, offset: int, data: bytes, **fields: Any) -> InteractiveOutput:
    return InteractiveOutput(
        session_id=str(session.id), stream="stdout", offset=offset, seq=1, data=data, **fields
    )


def _waiting(offset: int, prompt: str, **fields: Any) -> TerminalReport:
    known = {"state": "awaiting_input", "kind": "line", "evidence": "kernel", "input_seq": 0}
    return TerminalReport(offset=offset, prompt=prompt, **{**known, **fields})


def _sent(session: CommandSession, make: Any, event: dict[str, object] | None) -> int:
    seq = outbox.allocate_seq(session.controller_id)
    outbox.enqueue(
        controller_id=session.controller_id, session_id=session.id, message=make(seq), event=event
    )
    return seq


def _typed(session: CommandSession, number: int, *, is_hidden: bool = False) -> int:
    return _sent(
        session,
        lambda seq: SendInput(
            seq=seq, session_id=str(session.id), input_seq=number, data=b"hunter2\n"
        ),
        {"actor": "token:ada", "hidden": is_hidden},
    )


def _events(session: CommandSession) -> list[tuple[str, int, str, dict[str, object], float | None]]:
    rows = SessionEvent.objects.filter(session=session).order_by("seq")
    return [(e.kind, e.offset, e.actor, e.detail, e.host_clock) for e in rows]


def _times(session: CommandSession) -> list[tuple[int, bytes, float | None]]:
    rows = OutputChunk.objects.filter(session=session).order_by("offset")
    return [(row.offset, bytes(row.data), row.host_clock) for row in rows]


def test_output_is_stored_with_the_time_of_its_first_byte(
    controller: Controller, session: CommandSession
) -> None:
    _commit(controller, _output(session, 0, b"ab", at=_at(5.0)))
    _commit(controller, _output(session, 2, b"cd"))
    assert _times(session) == [(0, b"ab", 5.0), (2, b"cd", None)]
    assert OutputChunk.objects.get(offset=0).host_time.timestamp() == _at(5.0).wall


def test_frames_of_different_moments_are_not_one_row(
    controller: Controller, session: CommandSession
) -> None:
    clocks = (5.0, 5.05, 5.2, 9.0)
    frames = [_output(session, offset, b"x", at=_at(clock)) for offset, clock in enumerate(clocks)]
    _commit(controller, *frames)
    assert _times(session) == [(0, b"xx", 5.0), (2, b"x", 5.2), (3, b"x", 9.0)]


def test_each_new_prompt_is_an_event_and_a_repeat_is_not(
    controller: Controller, session: CommandSession
) -> None:
    asked = _output(session, 0, b"Name: ", terminal=_waiting(6, "Name: "), terminal_at=_at(5.5))
    _commit(controller, asked)
    _commit(controller, asked)
    working = TerminalReport(state="running", offset=6, input_seq=0, detail="a")
    _commit(controller, _output(session, 6, b"", terminal=working, terminal_at=_at(6.0)))
    still = TerminalReport(state="running", offset=6, input_seq=0, detail="b")
    _commit(controller, _output(session, 6, b"", terminal=still, terminal_at=_at(7.0)))
    line = {"state": "awaiting_input", "kind": "line", "evidence": "kernel", "prompt": "Name: "}
    running = {"state": "running", "kind": "", "evidence": "", "prompt": ""}
    assert _events(session) == [("prompt", 6, "", line, 5.5), ("prompt", 6, "", running, 6.0)]


def test_an_input_is_an_event_with_its_caller_and_without_its_text(
    controller: Controller, session: CommandSession
) -> None:
    seq = _typed(session, 1, is_hidden=True)
    ack = InputAck(
        session_id=str(session.id),
        command_seq=seq,
        input_seq=1,
        accepted_bytes=8,
        offset=40,
        at=_at(6.0),
    )
    _commit(controller, ack)
    _commit(controller, ack)
    assert _events(session) == [
        ("input", 40, "token:ada", {"hidden": True, "at_most_bytes": 16}, 6.0)
    ]


def test_a_refused_input_says_why(controller: Controller, session: CommandSession) -> None:
    seq = _typed(session, 1)
    failure = Failure(code="INPUT_BLOCKED", message="the program does not read")
    ack = InputAck(session_id=str(session.id), command_seq=seq, input_seq=1, failure=failure)
    _commit(controller, ack)
    (event,) = _events(session)
    assert event[3] == {"hidden": False, "at_most_bytes": 0, "failure": "INPUT_BLOCKED"}


def test_a_resize_is_an_event_where_the_host_did_it(
    controller: Controller, session: CommandSession
) -> None:
    size = {"rows": 50, "cols": 132, "from_rows": 24, "from_cols": 120}
    sizes = {"rows": 50, "cols": 132}
    key = str(session.id)
    seq = _sent(
        session,
        lambda seq: Resize(seq=seq, session_id=key, **sizes),
        {"actor": "token:ada", **size},
    )
    ended = _sent(session, lambda seq: TerminateCmd(seq=seq, session_id=key), None)
    done = CommandAck(session_id=key, command_seq=seq, offset=12, at=_at(7.0))
    _commit(controller, done, CommandAck(session_id=key, command_seq=ended, offset=12, at=_at(7.0)))
    assert _events(session) == [("resize", 12, "token:ada", size, 7.0)]


def test_the_end_comes_after_what_was_reported_with_it(
    controller: Controller, session: CommandSession
) -> None:
    gone = Gap(
        session_id=str(session.id),
        stream="stdout",
        from_offset=0,
        to_offset=100,
        reason="ring_overflow",
    )
    asked = _output(session, 100, b"? ", terminal=_waiting(102, "? "), terminal_at=_at(8.0))
    done = InteractiveCmdDone(
        session_id=str(session.id), end_reason="exited", exit_code=3, at=_at(9.0)
    )
    _commit(controller, gone, asked, done)
    found = _events(session)
    assert [(kind, offset, at) for kind, offset, _, _, at in found] == [
        ("gap", 100, None),
        ("prompt", 102, 8.0),
        ("end", 102, 9.0),
    ]
    assert found[0][3] == {"stream": "stdout", "from": 0, "to": 100, "reason": "ring_overflow"}
    assert found[2][3] == {"state": "EXITED", "exit_code": 3, "signal": ""}
