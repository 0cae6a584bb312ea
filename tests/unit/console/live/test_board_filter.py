"""The filters of the board, on the server's side."""

from datetime import UTC, datetime

import pytest

from console.live.board_filter import wants
from console.live.messages import Row, WatchBoard

NOW = datetime(2026, 11, 23, 10, 5, tzinfo=UTC)
ROW = Row(
    id="1",
    group="person",
    waits="secret",
    doing="waits for a secret",
    host="web-17",
    project="shop",
    kind="interactive",
    command="sudo apt-get upgrade",
    prompt="[sudo] password for ada:",
    last_line="",
    since="2026-11-23T10:00:00+00:00",
    started_by="by token:claude",
    ends_at="",
    is_paused=False,
)


@pytest.mark.parametrize(
    ("fields", "is_wanted"),
    [
        ({}, True),
        ({"waits": "secret", "host": "web-17", "since": "5m", "q": "WEB password apt"}, True),
        ({"waits": "line"}, False),
        ({"host": "web-1"}, False),
        ({"since": "6m"}, False),
        ({"since": "1d"}, False),
        ({"since": "no span"}, True),
        ({"since": "999999d"}, False),
        ({"q": "password db"}, False),
    ],
)
def test_each_filter_leaves_what_it_names(fields: dict[str, str], is_wanted: bool) -> None:
    assert wants(WatchBoard(**fields), ROW, NOW) is is_wanted
