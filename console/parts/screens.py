"""Makes the screens of a recording, from which a replay begins when somebody jumps.

A replay that is opened starts ``manage.py make_screens`` for its session, at most one such process
beside each server process. The process ends when the screens are made, or when the server ends. It
begins where an earlier one stopped.
"""

import logging
import os
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable
from typing import Final, NamedTuple
from uuid import UUID

from django.conf import settings

from console.parts.emulator import Emulator, after_others, emulator_command
from projects.models import CommandSession
from projects.output.recording import screens
from projects.output.recording.cast import first_size
from projects.output.recording.replay import ReplayPart, replay_part
from projects.output.recording.rows import ends
from projects.output.recording.screens import NewScreen, ScreenPlace

logger = logging.getLogger(__name__)

BATCH: Final = 8
"""So many screens are stored with one commit."""
NICENESS: Final = 10
"""More than half of the work is that of the process itself, and calls of tools go before it.

At 19, where the emulator is, a busy machine could stop it in the middle of a commit, for which
others wait.
"""
_NO_STATE: Final = b"null"
"""What the emulator answers inside of an escape sequence."""


class _Work(NamedTuple):
    session_id: UUID
    total: int
    begun_at: int
    process: subprocess.Popen[bytes]


_lock: Final = threading.Lock()
_newest: Final[list[_Work]] = []
"""The process that was started last, if there was one."""


def ensure_made(session: CommandSession) -> bool:
    """Starts the process if screens are missing; returns True while it may make some.

    A process that could make no more for as much output is not started again.
    """
    if emulator_command() is None or screens.is_covered(session):
        return False
    wanted = (session.pk, sum(ends(session).values()), screens.last(session.pk).place)
    with _lock:
        for work in _newest:
            if work.process.poll() is None:
                return True
            if work[:3] == wanted:
                if code := work.process.returncode:
                    logger.warning("make_screens %s ended with code %d", session.pk, code)
                return False
        _newest[:] = [_Work(*wanted, _started(session.pk))]
    return True


def _started(session_id: UUID) -> subprocess.Popen[bytes]:
    python = [*after_others(NICENESS), sys.executable]
    command = [*python, "-m", "django", "make_screens", str(session_id), "--beside-server"]
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": settings.SETTINGS_MODULE}
    # Nothing is written to its input: it ends when this process does.
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        cwd=settings.BASE_DIR,
        env=environment,
    )


def make(session_id: UUID, goes_on: Callable[[], bool]) -> None:
    """Makes the screens that are missing, as long as ``goes_on`` says so before each part."""
    # What was read before output was taken away, or a secret was typed, is not kept.
    while not _made(session_id, goes_on) and goes_on():
        pass


def _made(session_id: UUID, goes_on: Callable[[], bool]) -> bool:
    """Make the screens; False if the output was changed meanwhile, so that some are missing."""
    session = CommandSession.objects.get(pk=session_id)
    read_at = screens.version(session_id)
    step = screens.step_bytes(session)
    at = screens.last(session_id)
    kept, batch = at.place, list[NewScreen]()
    state = b""
    with _emulator(session, at) as emulator:
        while goes_on() and (part := _next_part(session, at, state)).stdout is not None:
            state = emulator.fed(part.model_dump_json())
            at = _place_after(part, at)
            if at.place - kept < step or not _is_kept(state):
                continue
            kept = at.place
            batch.append(NewScreen(at, zlib.compress(state)))
            if len(batch) == BATCH:
                if not screens.store(session_id, read_at, batch):
                    return False
                batch = []
    return screens.store(session_id, read_at, batch)


def _emulator(session: CommandSession, at: ScreenPlace) -> Emulator:
    stored = screens.state_at(session.pk, at.place)
    rows, cols = first_size(session)
    return Emulator(
        rows=rows,
        cols=cols,
        is_pipes=session.io_mode == CommandSession.IoModeChoice.PIPE,
        state=None if stored is None else zlib.decompress(stored),
    )


def _next_part(session: CommandSession, at: ScreenPlace, state: bytes) -> ReplayPart:
    # Parts may end inside of an escape sequence again and again. So the first piece that ends
    # outside of one is looked for.
    return replay_part(session, at.stdout, at.stderr, is_least=state == _NO_STATE)


def _place_after(part: ReplayPart, before: ScreenPlace) -> ScreenPlace:
    time = part.pieces[-1][0] if part.pieces else before.time
    return ScreenPlace(time=time, stdout=part.stdout or 0, stderr=part.stderr or 0)


def _is_kept(state: bytes) -> bool:
    """False inside of an escape sequence, and for a screen that a program made huge."""
    return state != _NO_STATE and len(state) <= screens.MAX_STATE_BYTES
