"""Reading one file of a log: characters, bytes that are no text, holes, and marks."""

import os
from pathlib import Path

import pytest

from controller_client.logs import log_file
from controller_client.logs.log_file import LEAST_HOLE_BYTES
from controller_client.logs.reader import has_news
from controller_client.protocol.limits import MAX_FILE_CHUNK_BYTES
from tests.support.hosts.log_files import Reader, rotate, write


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


@pytest.mark.parametrize("part", [b"\xe2", b"\xe2\x82", b"\xf0\x9f\x98"])
def test_a_part_of_a_character_behind_a_chunk_is_nothing_more(log: Path, part: bytes) -> None:
    write(log, b"12345678" + part)
    reader = Reader(log, max_bytes=8)
    chunk = reader.look()
    assert (chunk.data, chunk.has_more) == (b"12345678", False)
    assert not has_news(reader.look())


def test_space_that_is_not_written_yet_is_nothing_more(log: Path) -> None:
    write(log, b"12345678")
    os.truncate(log, LEAST_HOLE_BYTES * 4)
    reader = Reader(log, max_bytes=8)
    chunk = reader.look()
    assert (chunk.data, chunk.has_more) == (b"12345678", False)
    assert not has_news(reader.look(max_bytes=MAX_FILE_CHUNK_BYTES))


def test_a_part_of_a_character_behind_a_late_chunk_is_nothing_more(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = Reader(log)
    write(log, b"1\n")
    reader.rest()
    rotate(log)
    write(log, b"2\n")
    reader.rest()
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 3600.0)
    with log.with_name("app.log.1").open("ab") as late:
        late.write(b"late\n\xe2\x82")
    chunk = reader.look()
    assert (chunk.data, chunk.late, chunk.has_more) == (b"late\n", True, False)
    assert not has_news(reader.look())


def test_the_last_character_of_an_old_log_may_stay_incomplete(log: Path) -> None:
    reader = Reader(log)
    write(log, b"1\xe2\x82")
    assert reader.rest() == b"1"
    rotate(log)
    write(log, b"2")
    assert reader.rest() == b"\xe2\x822"


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
