"""The judge finds each byte that a page was not shown, or twice, or wrong."""

from pathlib import Path
from typing import Any

import pytest

from chaos.judge.people.watchers import MOST_LAG_BYTES, check_shown
from chaos.truth import Truth
from tests.unit.chaos.judge.people.records import note, record


class Shown:
    """A page that is loaded anew in the middle of a stream with a gap; a test changes one thing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stored = b"abcdefgh"
        self.shown = b"abcdefgh"
        self.total = 10
        self.gaps = [{"from_offset": 4, "to_offset": 6, "reason": "ring_overflow"}]
        self.events: list[list[Any]] = [
            ["open", 0],
            ["output", 0, 3],
            ["open", 3],
            ["output", 3, 1],
            ["gap", 4, 6],
            ["output", 6, 4],
        ]
        self.shut_out: list[dict[str, Any]] = []

    def rules(self) -> list[str]:
        (self.directory / "n.out").write_bytes(self.stored)
        (self.directory / "n.all").write_bytes(self.shown)
        shown = note(9.0, who="all", file="n.all", total=self.total, events=self.events)
        found = record(
            [],
            Truth(),
            shown=[shown],
            stored=[note(8.0, stream="out", gaps=self.gaps, total=self.total)],
            shut_out=self.shut_out,
        )
        found.stored = self.directory
        return [violation.rule for violation in check_shown(found)]


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_a_page_that_was_shown_everything_has_no_violation(shown: Shown) -> None:
    assert shown.rules() == []


@pytest.mark.parametrize(
    ("place", "event"),
    [
        (3, ["output", 2, 1]),
        (3, ["output", 4, 1]),
        (4, ["gap", 3, 6]),
        (4, ["gap", 4, 7]),
        (5, ["output", 6, 3]),
        (3, ["begin", 0, 0]),
        (3, ["begin", 4, 1]),
    ],
)
def test_a_byte_missing_or_doubled_is_found(shown: Shown, place: int, event: list[Any]) -> None:
    shown.events[place] = event
    assert shown.rules() == ["pages show every byte"]


def test_a_byte_that_is_not_the_stored_one_is_found(shown: Shown) -> None:
    shown.shown = b"abcdexgh"
    assert shown.rules() == ["pages show every byte"]


def test_a_page_that_is_far_behind_may_skip_and_is_told(shown: Shown) -> None:
    size = MOST_LAG_BYTES + 10
    shown.stored, shown.shown, shown.gaps = bytes(size), bytes(9), []
    shown.total = size
    shown.events = [["open", 0], ["output", 0, 4], ["begin", size - 5, size - 9]]
    shown.events.append(["output", size - 5, 5])
    assert shown.rules() == []
    shown.events[2][2] -= 1
    assert shown.rules() == ["pages show every byte"]


def test_a_page_may_begin_with_the_screen_as_it_is(shown: Shown) -> None:
    shown.events = [["open", None], ["begin", 6, 6], ["output", 6, 4]]
    shown.shown = b"efgh"
    assert shown.rules() == []


def test_a_page_that_is_turned_away_is_found(shown: Shown) -> None:
    shown.shut_out = [note(3.0, who="all", code="LOGIN_ENDED", text="sign in again")]
    assert shown.rules() == ["pages are let in"]
