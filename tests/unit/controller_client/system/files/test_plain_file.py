"""A plain file is read, and what a program put in its place is told from one that is missing."""

import os
import socket
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from controller_client.protocol.errors import BadFrame
from controller_client.system.files.plain_file import (
    MAX_BYTES,
    NotPlainFile,
    decoded,
    open_plain,
    read_plain,
)
from tests.support.descriptors import spare_descriptors
from tests.support.processes import open_descriptors


def _socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    finally:
        os.chdir(here)


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "file"


@pytest.mark.parametrize("put", [os.mkfifo, Path.mkdir, _socket, _loop, _device])
def test_what_is_no_plain_file_is_neither_opened_nor_read(
    path: Path, put: Callable[[Path], object]
) -> None:
    put(path)
    before = open_descriptors(os.getpid())
    with pytest.raises(NotPlainFile):
        read_plain(path)
    with pytest.raises(NotPlainFile):
        open_plain(path)
    assert open_descriptors(os.getpid()) == before


def test_a_link_is_followed_only_by_who_allows_that(path: Path, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"content")
    path.symlink_to("target")
    with open_plain(path) as file:
        assert file.read() == b"content"
    with pytest.raises(NotPlainFile):
        open_plain(path, follows_links=False)
    with pytest.raises(NotPlainFile):
        read_plain(path)


def test_a_missing_file_and_a_shortage_are_what_they_are(path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_plain(path)
    path.write_bytes(b"content")
    with spare_descriptors(0), pytest.raises(OSError, match="Too many open files") as failed:
        read_plain(path)
    assert not isinstance(failed.value, NotPlainFile)
    assert read_plain(path) == b"content"


def test_the_largest_file_is_read_and_a_larger_one_is_none(path: Path) -> None:
    path.write_bytes(b"x" * MAX_BYTES)
    assert len(read_plain(path)) == MAX_BYTES
    path.write_bytes(b"x" * (MAX_BYTES + 1))
    with pytest.raises(NotPlainFile):
        read_plain(path)


@pytest.mark.parametrize(
    "error", [BadFrame("no"), msgspec.DecodeError("no"), ValueError("no"), RecursionError("no")]
)
def test_content_that_means_nothing_is_none(error: Exception) -> None:
    def decode(_content: bytes) -> int:
        raise error

    assert decoded(b"", decode) is None


def test_an_error_of_the_reader_is_no_content_that_means_nothing() -> None:
    def decode(_content: bytes) -> int:
        raise KeyError

    with pytest.raises(KeyError):
        decoded(b"", decode)
    assert decoded(b"12", int) == 12
