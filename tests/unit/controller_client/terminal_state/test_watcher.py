"""The watcher on a terminal without a program has only text to judge by."""

import os
import termios
import tty
from collections.abc import Iterator
from unittest import mock

import pytest

from controller_client.terminal_state.decision import Verdict
from controller_client.terminal_state.kernel.snapshot import Snapshot
from controller_client.terminal_state.watcher import TerminalWatcher


class Clock:
    """A clock that the test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    """Return master and slave of a new terminal."""
    master, slave = os.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


@pytest.fixture
def watcher(ends: tuple[int, int], clock: Clock) -> Iterator[TerminalWatcher]:
    """Return a watcher without a program, which can only judge the text."""
    created = TerminalWatcher(ends[0], 2**22 + 1, clock=clock)
    yield created
    created.close()


def nothing() -> bool:
    return False


def test_without_text_nothing_is_guessed(watcher: TerminalWatcher, clock: Clock) -> None:
    clock.now += 10
    verdict, delay = watcher.look(nothing)
    assert verdict.state == "running"
    assert delay is not None


def test_a_prompt_is_guessed_after_a_silence_and_not_before(
    watcher: TerminalWatcher, clock: Clock
) -> None:
    watcher.on_output(b"Name: ")
    verdict, delay = watcher.look(nothing)
    assert verdict.state == "running"
    while not verdict.is_waiting and clock.now < 1001:
        assert delay is not None
        clock.now += delay
        verdict, delay = watcher.look(nothing)
    assert (verdict.state, verdict.kind, verdict.evidence, verdict.prompt) == (
        "awaiting_input",
        "line",
        "heuristic",
        "Name: ",
    )
    assert clock.now == pytest.approx(1000.3)


def test_a_cursor_that_blinks_does_not_keep_a_silence_from_beginning(
    watcher: TerminalWatcher, clock: Clock
) -> None:
    watcher.on_output(b"\x1b[?1049h\x1b[3;1HName: ")
    for number in range(8):
        clock.now += 0.5
        assert watcher.look(nothing)[0].is_waiting is (number > 3)
        watcher.on_output(b"\x1b[3;7H" + (b"\x1b[7m \x1b[m" if number % 2 else b" "))
    clock.now += 0.01
    assert watcher.look(nothing)[0].is_waiting
    watcher.on_output(b"\x1b[3;1HSaved")
    assert not watcher.look(nothing)[0].is_waiting


@pytest.mark.parametrize(("late_seconds", "is_taken"), [(0.01, True), (0.2, False)])
def test_a_late_look_takes_no_other_run_for_a_waking(
    watcher: TerminalWatcher, clock: Clock, late_seconds: float, *, is_taken: bool
) -> None:
    watcher._woken, watcher._woken_at = {12: b"1 1 1"}, clock.now
    clock.now += late_seconds
    with mock.patch.object(watcher._probe, "look", return_value=Snapshot()) as look:
        watcher.look(nothing)
    assert (look.call_args.args[0].woken is not None) is is_taken


def test_output_that_comes_with_the_last_check_voids_the_claim(
    watcher: TerminalWatcher, clock: Clock
) -> None:
    watcher.on_output(b"Name: ")
    watcher.look(nothing)
    clock.now += 0.5

    def more() -> bool:
        watcher.on_output(b"not yet")
        return True

    verdict, delay = watcher.look(more)
    assert verdict == Verdict("running")
    assert delay is not None
    assert delay < 0.01


def test_an_input_voids_the_claim_and_its_prompt(watcher: TerminalWatcher, clock: Clock) -> None:
    watcher.on_output(b"Name: ")
    watcher.look(nothing)
    clock.now += 0.5
    assert watcher.look(nothing)[0].is_waiting
    watcher.before_input(b"ada\n")
    clock.now += 5
    assert not watcher.look(nothing)[0].is_waiting


@pytest.mark.parametrize("key", [b"\x03", b"\x04", b"\x1a", b"\x1c"])
def test_a_line_editor_that_only_rings_the_bell_keeps_its_prompt(
    ends: tuple[int, int], watcher: TerminalWatcher, clock: Clock, key: bytes
) -> None:
    tty.setcbreak(ends[1])
    watcher.on_output(b"db> select")
    watcher.before_input(key)
    watcher.on_output(b"\a")
    verdict = watcher.look(nothing)[0]
    for _ in range(20):
        clock.now += 0.5
        verdict = watcher.look(nothing)[0]
    assert (verdict.state, verdict.prompt) == ("awaiting_input", "db> select")


def test_a_flood_of_output_is_not_looked_at(watcher: TerminalWatcher, clock: Clock) -> None:
    for _ in range(100):
        watcher.on_output(b"line\n")
    verdict, delay = watcher.look(nothing)
    assert verdict == Verdict("running")
    assert delay == pytest.approx(0.003)


def test_modes_are_read_at_each_question(watcher: TerminalWatcher, ends: tuple[int, int]) -> None:
    assert watcher.is_canonical()
    attributes = termios.tcgetattr(ends[1])
    attributes[3] &= ~termios.ECHO
    termios.tcsetattr(ends[1], termios.TCSANOW, attributes)
    watcher.on_output(b"\x1b[?1h")
    assert watcher.application_cursor


def test_queries_are_answered(watcher: TerminalWatcher) -> None:
    assert watcher.on_output(b"\x1b[6n") == b"\x1b[1;1R"


def test_a_program_without_its_terminal_counts_as_running(clock: Clock) -> None:
    master, slave = os.openpty()
    watcher = TerminalWatcher(master, os.getpid(), clock=clock)
    os.close(slave)
    os.close(master)
    watcher.before_input(b"x\n")
    verdict, delay = watcher.look(nothing)
    assert verdict == Verdict("running")
    assert delay is not None
    assert not watcher.is_canonical()
    assert watcher.reader() is None
    watcher.close()
