"""Processes that outlived their session, as far as its row knows them."""

import json
from typing import Any

import pytest

from controller_client.protocol.values import NOTE_LEFT_UNKNOWN, NOTE_NOTHING_LEFT
from projects.models.survivors import NOTE_REBOOTED, survivors_of


@pytest.mark.parametrize(
    ("state", "survivors", "notes", "known"),
    [
        ("RUNNING", [], [], None),
        ("PENDING", [], [], None),
        ("TERMINATED", [], [], ()),
        ("TERMINATED", ["bash[7]"], [], ("bash[7]",)),
        ("EXITED", ["sleep[9]"], ["left_running"], ("sleep[9]",)),
        ("EXITED", [], [NOTE_LEFT_UNKNOWN], None),
        ("TIMED_OUT", [], [], ()),
        ("START_FAILED", [], [], ()),
        ("LOST", [], [], None),
        ("LOST", [], ["holder_died"], None),
        ("LOST", ["sleep[9]"], ["holder_died"], ("sleep[9]",)),
        ("LOST", [], ["holder_died", NOTE_NOTHING_LEFT], ()),
        ("LOST", [], [NOTE_REBOOTED], ()),
    ],
)
def test_nothing_is_called_gone_that_nobody_looked_for(
    state: str, survivors: list[str], notes: list[str], known: Any
) -> None:
    assert survivors_of(state, survivors, notes) == known
    assert survivors_of(state, json.dumps(survivors), json.dumps(notes)) == known, (
        "as SQLite gives it"
    )
