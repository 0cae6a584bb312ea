"""Looks at logs: what is read, and what is noticed. Every look knows only what the answer before it said."""

import contextlib
import itertools
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from controller_client import file_reader
from controller_client.file_reader import LEAST_HOLE_BYTES, has_news, look
from controller_client.log_paths import LogPaths
from controller_client.protocol.messages import FileChunk, FilePlace, ReadFile

_CLOCK = itertools.count(1_700_000_000)


class Reader:
    """A caller with the place that the last answer gave it."""

    def __init__(self, path: Path, max_bytes: int = 65_536) -> None:
        self.ask = ReadFile(path=str(path), max_bytes=max_bytes)
        self._paths = LogPaths([str(path.parent)], str(path.parent / "managed"))

    def look(self, **changes: object) -> FileChunk:
        chunk = look(self._paths, msgspec.structs.replace(self.ask, **changes))
        if chunk.failure is None:
            end = chunk.position + len(chunk.data)
            former = list(self.ask.former)
            if chunk.late:
                read = FilePlace(identity=chunk.identity, mark=chunk.mark, position=end)
                former = [read if place.identity == chunk.identity else place for place in former]
                self.ask = msgspec.structs.replace(self.ask, former=former)
                return chunk
            if chunk.reset == "rotated":
                left = FilePlace(identity=self.ask.identity, mark=self.ask.mark, position=self.ask.position or 0)
                former = [place for place in former if place.identity not in {left.identity, chunk.identity}] + [left]
                self.ask = msgspec.structs.replace(self.ask, former=former)
            self.ask = msgspec.structs.replace(self.ask, identity=chunk.identity, mark=chunk.mark, position=end)
        return chunk

    def all(self) -> Iterator[FileChunk]:
        """Answers until there is nothing left."""
        while has_news(chunk := self.look()):
            yield chunk

    def rest(self) -> bytes:
        return b"".join(chunk.data for chunk in self.all())


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Files of the past are quiet; each is older than the next.
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(file_reader, "SETTLED_SECONDS", 3600.0)
    monkeypatch.setattr(file_reader, "TICK_SECONDS", 0.0)
    path = tmp_path / "app.log"
    write(path, b"")
    return path


def write(path: Path, data: bytes) -> None:
    """Appends, later than everything written before."""
    with path.open("ab") as file:
        file.write(data)
    moment = next(_CLOCK)
    os.utime(path, (moment, moment))


def rotate(path: Path, keep: int = 9) -> None:
    """As logrotate does: every number goes up by one, and there is a new file."""
    for number in range(keep, 0, -1):
        older = path.with_name(f"{path.name}.{number}")
        if older.exists():
            older.rename(path.with_name(f"{path.name}.{number + 1}"))
    path.rename(path.with_name(f"{path.name}.1"))
    write(path, b"")


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
    assert [len(chunk.data) for chunk in Reader(log, max_bytes=10**9).all()] == [65_536, 65_536, 65_536, 3_392]


def test_without_a_position_the_end_is_where_it_begins(log: Path) -> None:
    write(log, b"old\n")
    reader = Reader(log)
    assert reader.look(position=None, max_bytes=0).position == 4
    write(log, b"new\n")
    assert reader.look().data == b"new\n"


def test_a_character_is_never_split(log: Path) -> None:
    reader = Reader(log)
    for piece in (b"a\xe2", b"\x82", b"\xac\xf0\x9f", b"\x98\x80\xff"):
        write(log, piece)
        reader.look().data.decode(errors="strict" if b"\xff" not in piece else "replace")
    assert reader.ask.position == 9
    write(log, "é".encode() * 100)
    assert {len(chunk.data) for chunk in Reader(log, max_bytes=5).all()} <= {4, 5}


def test_what_is_no_text_comes_through_whole(log: Path) -> None:
    data = bytes(range(256)) * 3
    write(log, data)
    assert Reader(log, max_bytes=7).rest() + b"" == data


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


def test_an_old_log_that_is_still_written_to_is_not_left(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"3\n")
    old = log.with_name("app.log.1")
    with old.open("ab") as file:
        file.write(b"2\n")
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 3600.0)
    assert [chunk.data for chunk in reader.all()] == [b"2\n"]
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 0.0)
    os.utime(old, (1_600_000_000, 1_600_000_000))
    assert [(chunk.data, chunk.reset) for chunk in reader.all()] == [(b"3\n", "rotated")]


def test_an_old_log_that_is_never_quiet_is_left_once_nothing_was_renamed_for_a_while(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    log.with_name("app.log.1").touch()
    monkeypatch.setattr(file_reader, "QUIET_SECONDS", 3600.0)
    assert reader.rest() == b""
    os.utime(log.parent, (1_600_000_000, 1_600_000_000))
    assert reader.rest() == b"2\n"


def test_what_is_written_to_a_log_that_was_left_is_told_as_late_and_the_place_stays(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    assert reader.rest() == b"2\n"
    write(log.with_name("app.log.1"), b"late\n")
    write(log, b"3\n")
    first, second = reader.all()
    assert (first.data, first.late, first.has_more, first.reset, first.position) == (b"late\n", True, True, None, 2)
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


@pytest.mark.parametrize("seed", range(30))
def test_lines_of_writers_that_reopen_a_rotated_log_late_or_never_are_all_read_once(log: Path, seed: int) -> None:
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
    assert sorted(b"".join(files.values()).splitlines()) == [b"line %04d" % number for number in range(next(numbers))]


def test_the_last_character_of_an_old_log_may_stay_incomplete(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\xe2\x82")
    assert reader.rest() == b"1"
    rotate(log)
    write(log, b"2")
    assert reader.rest() == b"\xe2\x822"


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
    assert [(chunk.data, chunk.reset) for chunk in reader.all()] == [(b"2\n", None), (b"3\n", "rotated")]


@pytest.mark.parametrize("regrown", [b"", b"new\n", b"new content that is longer than the old one\n"], ids=["empty", "shorter", "longer"])
def test_a_cut_log_is_noticed_however_far_it_has_grown_again(log: Path, regrown: bytes) -> None:
    reader = Reader(log)
    write(log, b"old content\n")
    reader.rest()
    os.truncate(log, 0)
    write(log, regrown)
    chunk = reader.look()
    assert (chunk.data, chunk.reset, chunk.gap, chunk.gap_bytes) == (regrown, "truncated", "truncated", None)
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


def test_of_a_series_whose_oldest_is_gone_what_is_left_is_read_and_the_gap_is_told(log: Path) -> None:
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


def test_a_hole_of_a_sparse_file_is_skipped_and_told(log: Path) -> None:
    size = 1 << 40
    with log.open("r+b") as file:
        file.truncate(size)
        file.seek(size - 4096)
        file.write(b"end of it\n".ljust(4096, b"."))
    reader = Reader(log)
    chunk = reader.look()
    assert chunk.gap == "hole"
    assert chunk.gap_bytes == chunk.position
    assert chunk.position > size - 65_536
    assert chunk.data.lstrip(b"\0").startswith(b"end of it\n")


def test_space_that_was_allocated_in_advance_is_nothing_yet(log: Path) -> None:
    os.truncate(log, LEAST_HOLE_BYTES * 2)
    reader = Reader(log)
    assert not has_news(reader.look())
    with log.open("r+b") as file:
        file.write(b"first\n")
    assert reader.look().data.startswith(b"first\n")


def test_space_that_is_allocated_behind_what_is_written_is_nothing_yet(log: Path) -> None:
    reader = Reader(log)
    for number in range(3):
        with log.open("r+b") as file:
            file.seek(number * 7)
            file.write(b"line %d\n\0" % number)
            file.truncate(1 << 40)
        assert reader.rest() == b"line %d\n" % number
        os.truncate(log, (number + 1) * 7)
    write(log, b"\0" * (LEAST_HOLE_BYTES * 2) + b"end\n")
    assert len(reader.rest()) == LEAST_HOLE_BYTES * 2 + 4


@pytest.mark.parametrize("mark", ["x", "1:2", "9:abc:-1", "999999999999999999999:a:1", ":::"])
def test_a_mark_that_is_none_is_continued_by_nothing(log: Path, mark: str) -> None:
    write(log, b"content\n")
    reader = Reader(log)
    identity = reader.look().identity
    assert reader.look(identity=identity, mark=mark, position=4).reset == "truncated"


def _append(log: Path, line: bytes) -> None:
    write(log, line)


@pytest.mark.parametrize("seed", range(40))
def test_numbered_lines_are_read_once_and_in_order_whatever_rotates_when(log: Path, seed: int) -> None:
    dice = random.Random(seed)
    reader = Reader(log, max_bytes=dice.choice([4, 16, 64, 65_536]))
    numbers, read = itertools.count(), b""
    steps: list[Callable[[], None]] = [
        *[lambda: _append(log, b"line %d\n" % next(numbers))] * 6,
        lambda: rotate(log, keep=200),
    ]
    reader.look()
    for _ in range(150):
        dice.choice(steps)()
        if dice.random() < 0.4:
            read += reader.look().data
    read += reader.rest()
    assert read == b"".join(b"line %d\n" % number for number in range(next(numbers)))
