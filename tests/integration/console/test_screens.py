"""The screens of a recording are made by the emulator of the pages, in a process beside."""

import json
import os
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from console.parts.emulator import emulator_command
from console.parts.screens import ensure_made, make
from projects.models import CommandSession, OutputGap
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.output.recording import events, replay, screens
from projects.output.recording.events import NewEvent
from tests.support.rows import make_controller, make_session
from tests.support.stack import PROJECT_ROOT

pytestmark = pytest.mark.django_db
PIECE = 100
MARKS = b"\x1b[31mr\x1b[1mb\x1b[0m\xe2\x82\xac\r\n"
"""20 bytes, so that a piece ends with a line and not inside of a sequence."""


@pytest.fixture(scope="module", autouse=True)
def _emulator_files() -> Iterator[None]:
    """The emulator is there, as after every set-up."""
    subprocess.run([sys.executable, "-m", "quickstart.browser_files"], cwd=PROJECT_ROOT, check=True)
    emulator_command.cache_clear()
    yield
    emulator_command.cache_clear()


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "PART_BYTES", PIECE)
    monkeypatch.setattr(screens, "STEP_BYTES", 2 * PIECE)


def _recorded(data: bytes, host: str = "host") -> CommandSession:
    session = make_session(make_controller(host), rows=5, cols=20, stdout_next_offset=len(data))
    output_log.append(
        [
            NewChunk(session.pk, "stdout", at, at, data[at : at + PIECE])
            for at in range(0, len(data), PIECE)
        ]
    )
    return session


def _states(session: CommandSession) -> dict[int, dict[str, object]]:
    found = {}
    for place in screens.places(session.pk):
        state = screens.state_at(session.pk, place.stdout)
        found[place.stdout] = json.loads(zlib.decompress(state or b""))
    return found


def _rounds(count: int) -> Callable[[], bool]:
    """True so many times."""
    left = iter([True] * count)
    return lambda: next(left, False)


def test_calls_of_tools_go_before_the_whole_of_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []

    def start(command: list[str], **_options: object) -> Any:
        started.append(command)
        return SimpleNamespace(poll=lambda: 0, returncode=0)

    session = _recorded(MARKS * 50)
    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", start)
        assert ensure_made(session)
    (command,) = started
    before = command[: command.index(sys.executable)]
    told = subprocess.run([*before, "nice"], check=True, capture_output=True, text=True)
    assert int(told.stdout) == min(19, os.nice(0) + 10)


def test_screens_lie_a_step_apart_and_hold_what_was_drawn() -> None:
    session = _recorded(b"\x1b[?1049h\x1b[2;4r".ljust(PIECE) + MARKS * 100)
    size = {"rows": 6, "cols": 30, "from_rows": 5, "from_cols": 20}
    events.append([NewEvent(session.pk, "resize", 450, "ada", size)])
    make(session.pk, lambda: True)
    states = _states(session)
    gaps = [after - before for before, after in zip([0, *states], states, strict=False)]
    assert gaps == [2 * PIECE] * 10
    assert screens.is_covered(session)
    (first, *_), (*_, last) = states.values(), states.values()
    assert (first["rows"], first["cols"]) == (5, 20)
    assert (last["rows"], last["cols"]) == (6, 30)
    assert last["isAlternate"]


def test_a_second_run_goes_on_where_the_first_stopped() -> None:
    data = MARKS * 150
    whole, stopped = _recorded(data), _recorded(data, "other")
    make(whole.pk, lambda: True)
    make(stopped.pk, _rounds(9))
    begun = len(_states(stopped))
    make(stopped.pk, lambda: True)
    assert 0 < begun < len(_states(stopped))
    # The lines above the screen are fewer, since each run keeps a hundred of those it was given.
    assert _states(stopped) == _states(whole)


def test_no_screen_lies_inside_of_a_sequence_that_goes_on() -> None:
    session = _recorded(b"\x1b]52;c;" + b"A" * 1500 + b"\x07" + b"behind\r\n" * 60)
    make(session.pk, lambda: True)
    assert min(_states(session)) > 1500


def test_screens_are_made_if_each_part_ends_inside_of_a_sequence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay, "PART_BYTES", 2 * PIECE)
    session = _recorded((b"1m".ljust(2 * PIECE - 4, b"x") + b"\r\n\x1b[") * 20)
    make(session.pk, lambda: True)
    assert screens.is_covered(session)


def _takes_away_first(session: CommandSession, rounds: Callable[[], bool]) -> Callable[[], bool]:
    """``rounds``, and output that is taken away as soon as the first part is about to be read."""

    def goes() -> bool:
        OutputGap.objects.get_or_create(
            session=session, stream="stdout", from_offset=0, to_offset=1, reason="retention"
        )
        return rounds()

    return goes


def test_nothing_is_kept_of_output_that_goes_meanwhile() -> None:
    session = _recorded(MARKS * 150)
    make(session.pk, _takes_away_first(session, _rounds(9)))
    assert _states(session) == {}


def test_screens_are_made_anew_from_the_output_that_is_left() -> None:
    session = _recorded(MARKS * 150)
    make(session.pk, _takes_away_first(session, lambda: True))
    assert screens.is_covered(session)


def test_a_short_recording_needs_no_screens() -> None:
    assert not ensure_made(_recorded(MARKS * 10))
