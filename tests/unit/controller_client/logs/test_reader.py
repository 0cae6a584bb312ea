"""Looks at a log that is rotated, cut, replaced and deleted while it is read.

Every look knows only what the answer before it said.
"""

import contextlib
import itertools
import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from controller_client.logs import log_file
from controller_client.logs.reader import has_news
from controller_client.logs.series import LogSeries
from tests.support.hosts.log_files import Reader, rotate, write


def test_a_log_is_read_piece_by_piece_and_nothing_is_news_at_its_end(log: Path) -> None:
    write(log, b"one\ntwo\nthree\n")
    reader = Reader(log, max_bytes=8)
    first, second, third = reader.look(), reader.look(), reader.look()
    assert (first.data, first.has_more, first.position) == (b"one\ntwo\n", True, 0)
    assert (second.data, second.has_more, second.position) == (b"three\n", False, 8)
    assert (third.data, has_news(third)) == (b"", False)
    write(log, b"four\n")
    assert reader.look().data == b"four\n"


def test_an_answer_is_never_larger_than_a_chunk(log: Path) -> None:
    write(log, b"x" * 200_000)
    assert [len(chunk.data) for chunk in Reader(log, max_bytes=10**9).all()] == [
        65_536,
        65_536,
        65_536,
        3_392,
    ]


def test_without_a_position_the_end_is_where_it_begins(log: Path) -> None:
    write(log, b"old\n")
    reader = Reader(log)
    assert reader.look(position=None, max_bytes=0).position == 4
    write(log, b"new\n")
    assert reader.look().data == b"new\n"


def test_a_renamed_log_is_read_to_its_end_before_the_next_one(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    assert reader.rest() == b"1\n"
    write(log, b"2\n")
    log.rename(log.with_name("app.log.1"))
    assert reader.look().data == b"2\n"
    write(log.with_name("app.log.1"), b"3\n")
    assert reader.look().data == b"3\n"
    write(log, b"4\n")
    chunk = reader.look()
    assert (chunk.data, chunk.reset, chunk.gap, chunk.position) == (b"4\n", "rotated", None, 0)


def test_an_old_log_that_is_still_written_to_is_not_left(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"3\n")
    old = log.with_name("app.log.1")
    with old.open("ab") as file:
        file.write(b"2\n")
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 3600.0)
    assert [chunk.data for chunk in reader.all()] == [b"2\n"]
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 0.0)
    os.utime(old, (1_600_000_000, 1_600_000_000))
    assert [(chunk.data, chunk.reset) for chunk in reader.all()] == [(b"3\n", "rotated")]


def test_a_never_quiet_old_log_is_left_once_renames_are_long_past(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    log.with_name("app.log.1").touch()
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 3600.0)
    assert reader.rest() == b""
    os.utime(log.parent, (1_600_000_000, 1_600_000_000))
    assert reader.rest() == b"2\n"


def test_late_writes_to_a_left_log_are_marked_and_keep_the_position(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    assert reader.rest() == b"2\n"
    write(log.with_name("app.log.1"), b"late\n")
    write(log, b"3\n")
    first, second = reader.all()
    assert (first.data, first.late, first.has_more, first.reset, first.position) == (
        b"late\n",
        True,
        True,
        None,
        2,
    )
    assert (second.data, second.late, second.has_more, second.position) == (b"3\n", False, False, 2)
    rotate(log)
    write(log.with_name("app.log.2"), b"later \xe2\x82")
    late = reader.look()
    assert (late.data, late.late, late.has_more) == (b"later \xe2\x82", True, False)
    assert reader.rest() == b""


def test_what_came_late_and_is_much_comes_in_pieces(log: Path) -> None:
    reader = Reader(log, max_bytes=16)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    reader.rest()
    write(log.with_name("app.log.1"), b"x" * 40)
    assert [(len(chunk.data), chunk.late, chunk.has_more) for chunk in reader.all()] == [
        (16, True, True),
        (16, True, True),
        (8, True, False),
    ]


def test_a_former_log_that_is_gone_or_another_now_says_nothing(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    reader.rest()
    old = log.with_name("app.log.1")
    old.write_bytes(b"x\nand more of something else\n")
    assert reader.rest() == b""
    old.unlink()
    assert reader.rest() == b""


def test_a_rename_between_a_listing_and_an_opening_tells_nothing_twice(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(log)
    for lines in (b"1\n", b"2\n2\n2\n", b"3\n"):
        write(log, lines)
        assert reader.rest() == lines
        if lines != b"3\n":
            rotate(log)
    listed = LogSeries.names_by_inode

    def listed_too_early(self: LogSeries) -> dict[int, str]:
        found = listed(self)
        rotate(log)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(LogSeries, "names_by_inode", listed_too_early)
        assert reader.look().data == b""
    assert reader.rest() == b""


@pytest.mark.parametrize("seed", range(30))
def test_each_line_is_read_once_though_writers_reopen_a_log_late_or_never(
    log: Path, seed: int
) -> None:
    dice = random.Random(seed)
    reader = Reader(log, max_bytes=dice.choice([16, 64, 65_536]))
    numbers, rotations, chunks = itertools.count(), itertools.count(), [reader.look()]
    # A writer is the descriptor it has; a rotation leaves it with the file as it was.
    with contextlib.ExitStack() as held:
        writers = [held.enter_context(log.open("ab", buffering=0)) for _ in range(3)]
        for _ in range(120):
            step = dice.random()
            writer = dice.randrange(3)
            if step < 0.6:
                writers[writer].write(b"line %04d\n" % next(numbers))
            elif step < 0.7 and log.stat().st_size:
                log.rename(log.with_name(f"app.log-{next(rotations):03d}"))
                log.touch()
            else:
                writers[writer] = held.enter_context(log.open("ab", buffering=0))
            if dice.random() < 0.5:
                chunks.append(reader.look())
        chunks += reader.all()
    # What came late may stand in the middle of a line of another file.
    files = {chunk.identity: b"" for chunk in chunks}
    for chunk in chunks:
        assert (chunk.gap, chunk.reset or "rotated") == (None, "rotated")
        files[chunk.identity] += chunk.data
    assert sorted(b"".join(files.values()).splitlines()) == [
        b"line %04d" % number for number in range(next(numbers))
    ]


def test_several_rotations_between_two_looks_lose_nothing(log: Path) -> None:
    reader = Reader(log)
    write(log, b"0\n")
    reader.rest()
    for number in range(1, 6):
        write(log, b"%d\n" % number)
        rotate(log)
    assert reader.rest() == b"1\n2\n3\n4\n5\n"


def test_a_copy_that_rotation_made_is_read_where_the_log_was_cut(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    write(log, b"2\n")
    write(log.with_name("app.log.1"), log.read_bytes())
    os.truncate(log, 0)
    write(log, b"3\n")
    assert [(chunk.data, chunk.reset) for chunk in reader.all()] == [
        (b"2\n", None),
        (b"3\n", "rotated"),
    ]


@pytest.mark.parametrize(
    "regrown",
    [b"", b"new\n", b"new content that is longer than the old one\n"],
    ids=["empty", "shorter", "longer"],
)
def test_a_cut_log_is_noticed_however_far_it_has_grown_again(log: Path, regrown: bytes) -> None:
    reader = Reader(log)
    write(log, b"old content\n")
    reader.rest()
    os.truncate(log, 0)
    write(log, regrown)
    chunk = reader.look()
    assert (chunk.data, chunk.reset, chunk.gap, chunk.gap_bytes) == (
        regrown,
        "truncated",
        "truncated",
        None,
    )
    assert not has_news(reader.look())


def test_a_deleted_log_that_is_there_again_counts_as_replaced(log: Path, tmp_path: Path) -> None:
    reader = Reader(log)
    write(log, b"old content\n")
    reader.rest()
    other = tmp_path / "other"
    write(other, b"new\n")
    log.unlink()
    gone = reader.look()
    assert gone.failure is not None
    assert gone.failure.code == "FILE_NOT_FOUND"
    other.rename(log)
    chunk = reader.look()
    assert (chunk.data, chunk.reset, chunk.gap) == (b"new\n", "replaced", "replaced")


def test_an_inode_that_was_given_to_another_file_is_noticed(log: Path) -> None:
    reader = Reader(log)
    write(log, b"old content\n")
    reader.rest()
    log.unlink()
    write(log, b"not the old content, though perhaps the old inode\n")
    chunk = reader.look()
    assert chunk.reset in {"truncated", "replaced"}
    assert chunk.data.startswith(b"not the old")


def test_when_the_oldest_rotated_log_is_gone_the_rest_is_read_after_a_gap(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    for number in range(2, 6):
        write(log, b"%d\n" % number)
        rotate(log)
    log.with_name("app.log.4").unlink()
    first, *others = reader.all()
    assert (first.data, first.reset, first.gap) == (b"3\n", "replaced", "replaced")
    assert b"".join(chunk.data for chunk in others) == b"4\n5\n"


def test_a_neighbour_or_a_compressed_log_is_no_part_of_the_series(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    write(log.with_name("app.error.log"), b"other\n")
    write(log.with_name("application.log.1"), b"other\n")
    write(log.with_name("app.log.2.gz"), b"\x1f\x8b")
    rotate(log)
    write(log, b"2\n")
    assert reader.rest() == b"2\n"


@pytest.mark.parametrize("seed", range(40))
def test_numbered_lines_are_read_once_and_in_order_whatever_rotates_when(
    log: Path, seed: int
) -> None:
    dice = random.Random(seed)
    reader = Reader(log, max_bytes=dice.choice([4, 16, 64, 65_536]))
    numbers, read = itertools.count(), b""
    steps: list[Callable[[], None]] = [
        *[lambda: write(log, b"line %d\n" % next(numbers))] * 6,
        lambda: rotate(log, keep=200),
    ]
    reader.look()
    for _ in range(150):
        dice.choice(steps)()
        if dice.random() < 0.4:
            read += reader.look().data
    read += reader.rest()
    assert read == b"".join(b"line %d\n" % number for number in range(next(numbers)))
