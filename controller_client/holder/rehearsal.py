"""Sessions that are played before the real ones, so that the real ones find everything prepared.

What a process does for the first time costs it more: modules that are imported late, values that
are kept, code that the interpreter adapts to its use. A page of memory that a holder writes to is
copied first, which a caller would wait for, and which is the holder's own memory afterwards.
"""

import select
import time
from typing import Final

from controller_client.holder.session import InteractiveSession
from controller_client.protocol.codec import decode_from_server, encode
from controller_client.protocol.limits import SESSION_WINDOW_BYTES
from controller_client.protocol.messages import (
    HolderHello,
    InteractiveOutput,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.protocol.values import PROVES_READERS
from controller_client.session_files.one_shot import StartCommand

_NAME: Final = "rehearsal"
_TYPED: Final = (b"a line\n", b"\x04")
# Code that has run so often is adapted, and written to by no holder any more.
_TIMES: Final = 4
_STEP_SECONDS: Final = 0.01
_LONGEST_SECONDS: Final = 1.0


def rehearse() -> None:
    """Play a one-shot and a program on a terminal; the fork server does, before its first fork.

    Nothing depends on how they end. This process may have no other children.
    """
    for _ in range(_TIMES):
        rehearse_one_shot()
        _play(StartInteractiveCmd(seq=1, session_id=_NAME, command="cat", lifetime_seconds=1.0))


def rehearse_one_shot() -> None:
    """Play a one-shot, which a spare holder does while nobody waits for it."""
    _play(RunCommand(seq=1, session_id=_NAME, command="true", timeout_seconds=1.0))


def _play(start: StartCommand) -> None:
    told = decode_from_server.decode(encode(start))
    session = InteractiveSession(told if isinstance(told, StartCommand) else start)
    encode(HolderHello(summary=session.summary(), capabilities=[PROVES_READERS]))
    now = began = time.monotonic()
    session.begin()
    encode(session.started())
    session.pump.attach({}, SESSION_WINDOW_BYTES, now)
    while not session.has_ended and now < began + _LONGEST_SECONDS:
        if select.select(list(session.read_fds(now)), (), (), _patience(session, now))[0]:
            session.on_readable(now)
        now = time.monotonic()
        session.on_child_change(now)
        session.advance(now)
        for frame in session.pump.frames(now):
            encode(frame)
            if isinstance(frame, InteractiveOutput):
                _answer(session, frame, now)


def _patience(session: InteractiveSession, now: float) -> float:
    deadline = session.deadline(now)
    return _STEP_SECONDS if deadline is None else min(max(0.0, deadline - now), _STEP_SECONDS)


def _answer(session: InteractiveSession, frame: InteractiveOutput, now: float) -> None:
    """Acknowledge output, and type the next line at a program that waits."""
    session.pump.acknowledge(frame.stream, frame.offset + len(frame.data), now)
    seq = session.summary().input_seq
    is_waiting = frame.terminal is not None and frame.terminal.state == "awaiting_input"
    if is_waiting and seq < len(_TYPED):
        more = SendInput(seq=0, session_id=_NAME, input_seq=seq + 1, data=_TYPED[seq])
        for ack in session.on_input(more, now):
            encode(ack)
