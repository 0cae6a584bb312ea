"""The place of a monitor moves with what was read, through every rotation of its log."""

from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.messages import FileChunk
from projects.monitors.errors import MonitorNotFound
from projects.monitors.place import (
    MAX_FORMER_FILES,
    FormerFile,
    Place,
    monitor_id_of,
    parsed_id,
)


def _place(*former: FormerFile) -> Place:
    return Place(
        monitor_id=1,
        project_id=uuid4(),
        controller_id=uuid4(),
        session_id=uuid4(),
        path="/a.log",
        identity="new",
        mark="m",
        position=10,
        former=list(former),
        next_offset=100,
        version=1,
    )


def _chunk(**fields: Any) -> FileChunk:
    return FileChunk(**{"reply_to": "1", "identity": "new", "position": 10, "mark": "n", **fields})


def _old(number: int) -> FormerFile:
    return FormerFile(f"old{number}", "m", number)


def test_a_read_ends_behind_its_bytes_in_the_file_that_has_the_name() -> None:
    assert _place(_old(1)).columns_after(_chunk(data=b"four")) == {
        "file_identity": "new",
        "file_mark": "n",
        "file_position": 14,
        "file_former": [_old(1)],
    }


def test_late_bytes_move_only_the_file_that_they_are_of() -> None:
    late = _chunk(identity="old2", position=2, data=b"xyz", late=True)
    assert _place(_old(1), _old(2), _old(3)).columns_after(late) == {
        "file_former": [_old(1), FormerFile("old2", "n", 5), _old(3)]
    }


def test_a_file_that_was_rotated_away_is_kept_where_it_was_read_to() -> None:
    rotated = _chunk(identity="newer", position=0, data=b"x", reset="rotated")
    after = _place(_old(1)).columns_after(rotated)
    assert after["file_former"] == [_old(1), FormerFile("new", "m", 10)]
    assert (after["file_identity"], after["file_position"]) == ("newer", 1)


def test_a_file_that_begins_anew_is_no_former_file() -> None:
    for fields in ({"reset": "truncated"}, {"reset": "rotated"}, {"identity": "newer"}):
        assert _place(_old(1)).columns_after(_chunk(**fields))["file_former"] == [_old(1)]


def test_an_identity_that_is_given_again_is_that_of_the_new_file() -> None:
    rotated = _chunk(identity="old1", reset="rotated")
    assert _place(_old(1), _old(2)).columns_after(rotated)["file_former"] == [
        _old(2),
        FormerFile("new", "m", 10),
    ]
    back = _place(FormerFile("new", "x", 3), _old(2)).columns_after(
        _chunk(identity="newer", reset="rotated")
    )
    assert back["file_former"] == [_old(2), FormerFile("new", "m", 10)]


def test_of_many_former_files_the_oldest_is_forgotten() -> None:
    place = _place(*map(_old, range(MAX_FORMER_FILES)))
    former = place.columns_after(_chunk(identity="newer", reset="rotated"))["file_former"]
    assert former == [*map(_old, range(1, MAX_FORMER_FILES)), FormerFile("new", "m", 10)]


def test_a_question_asks_for_what_follows_in_every_file() -> None:
    question = _place(_old(1)).question(2.5)
    assert (question.identity, question.mark, question.position) == ("new", "m", 10)
    assert [(file.identity, file.position) for file in question.former] == [("old1", 1)]
    assert question.wait_seconds == 2.5


@pytest.mark.parametrize("change", [str.upper, lambda text: text.replace("-", ""), "{{{}}}".format])
def test_only_the_plain_form_of_an_id_names_a_monitor(change: Any) -> None:
    name = "3f2b8c1e-9d4a-4c6f-8a7b-1e2d3c4b5a69"
    assert str(monitor_id_of(name)) == name
    assert parsed_id(change(name)) is None
    with pytest.raises(MonitorNotFound):
        monitor_id_of(change(name))


def test_an_error_about_an_id_repeats_no_more_than_an_id_has() -> None:
    with pytest.raises(MonitorNotFound) as refused:
        monitor_id_of("x" * 1000)
    assert str(refused.value).count("x") == 64
