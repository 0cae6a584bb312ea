"""The page about the socket names every message, field, close code and limit, and no other."""

import re
from typing import Final, get_args

import msgspec
import pytest

from console.live import (
    board_reads,
    consumer,
    desk,
    feed,
    memory,
    messages,
    session_reads,
    watcher,
)
from console.live.messages import BadMessage, FromBrowser, Input, Output, ToBrowser, decode
from controller_client.protocol.messages import Stream
from tests.support.stack import PROJECT_ROOT

_PAGE: Final = (PROJECT_ROOT / "docs/reference/console-socket.md").read_text()
_KEYBOARD: Final = "0b7a0b7a-0000-4000-8000-000000000000"


def _rows(title: str) -> list[list[str]]:
    """The cells of the table under a title, without its head."""
    _, _, section = _PAGE.partition(f"## {title}\n")
    table = re.findall(r"^\| (.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    return [re.split(r" \| ", line) for line in table if not line.startswith(("Message", "Closed"))]


def _words(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    ("title", "declared"), [("From the browser", FromBrowser), ("From the server", ToBrowser)]
)
def test_each_message_is_on_the_page_with_its_fields(title: str, declared: object) -> None:
    told = {}
    for message, fields, _ in (row for row in _rows(title) if _words(row[0]) and len(row) == 3):
        if not message.strip().isdigit() and not fields.startswith("`BAD"):
            told[_words(message)[0]] = (_words(fields), fields.endswith("…"))
    structs = [one for one in get_args(declared) if one is not Output]
    assert list(told) == [one.__struct_config__.tag for one in structs]
    for one in structs:
        fields, has_more = told[one.__struct_config__.tag]
        if has_more:
            assert set(fields) <= set(one.__struct_fields__)
        else:
            assert sorted(fields) == sorted(one.__struct_fields__)


def test_each_close_code_is_on_the_page() -> None:
    source = (PROJECT_ROOT / "console/live/consumer.py").read_text()
    used = set(re.findall(r'\b(4\d\d\d), "([A-Z_]+)"', source))
    told = {
        (row[0], code)
        for row in _rows("From the server")
        if row[0].isdigit()
        for code in _words(row[1])
    }
    assert used <= told
    # The code of an error of the storage is that of the error.
    assert told - used == {("4503", "STORAGE_UNAVAILABLE")}


def test_each_limit_is_on_the_page() -> None:
    page = " ".join(_PAGE.split())
    for sentence in (
        f"at most {messages.MAX_INPUT_CHARS:,} characters",
        f"more than {consumer.MAX_QUEUED} messages wait",
        f"more than {consumer.MAX_PER_PERSON} pages of one person, or {consumer.MAX_CONNECTIONS}",
        f"and every {consumer.CHECK_SECONDS:g} s",
        f"at most {feed.BYTES_PER_SECOND // 1024} KiB a second",
        f"after {feed.CALM_SECONDS:g} s at the latest, or for {feed.HURRY_SECONDS:g} s after",
        f"{memory.MEMORY_BYTES // 2**20} MiB of it is kept",
        f"At most {watcher.WINDOW_BYTES // 1024} KiB are under way",
        f"more than {watcher.MAX_LAG_BYTES // 1024} KiB behind",
        f"drawn from at most {session_reads.SCREEN_BYTES // 1024} KiB",
        f"at most {board_reads.MAX_ROWS} sessions",
        f"renews the keyboard every {desk.KEEP_SECONDS:g} s",
    ):
        assert sentence in page


# ---- frames --------------------------------------------------------------------------------------


def _input(**fields: object) -> bytes:
    told = {"type": "input", "keyboard": _KEYBOARD, "seq": 1, "text": "x", **fields}
    return msgspec.json.encode(told)


@pytest.mark.parametrize("text", ["x" * 16_384, "\U0001f512" * 16_384, "\0" * 16_384, "\x7f\r\n"])
def test_the_longest_input_of_any_characters_is_a_message(text: str) -> None:
    for frame in (_input(text=text), _input(text=text).decode(), _input(text=text, more=[1])):
        message = decode(frame)
        assert isinstance(message, Input)
        assert message.text == text


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\0",
        "null",
        "[]",
        "{}",
        '{"type":"output"}',
        '{"type":"take","insists":1}',
        '{"type":["take"]}',
        _input(text=""),
        _input(text="x" * 16_385),
        _input(text=7),
        _input(seq=0),
        _input(seq=-1),
        _input(seq=2**53 + 1),
        _input(seq=1.5),
        _input(seq=True),
        _input(keyboard="x"),
        _input(keyboard=None),
        b'{"type":"input","seq":1,"keyboard":"' + _KEYBOARD.encode() + b'","text":"\\ud800"}',
        b'{"type":"seen","offset":-1}',
        b'{"type":"seen","offset":1,"stream":"stdin"}',
        b'{"type":"seen","offset":1e400}',
        b'{"type":"seen","offset":' + b"9" * 40 + b"}",
        b'{"type":"watch_session","session_id":"../x"}',
        b'{"type":"watch_board","q":"' + b"x" * 1001 + b'"}',
        b'{"type":"resize","rows":0,"cols":80}',
        b'{"type":"resize","rows":24}',
        b"[" * 100_000,
        b" " * (128 * 1024 + 1),
    ],
)
def test_what_is_no_message_is_refused_and_not_quoted(frame: bytes | str) -> None:
    with pytest.raises(BadMessage) as refused:
        decode(frame)
    assert str(refused.value) in (
        "the frame is too large",
        "the frame is no message of this socket",
    )


def test_the_last_of_two_equal_fields_counts_and_others_are_ignored() -> None:
    found = decode('{"type":"take","insists":true,"insists":false,"of_tomorrow":{"a":[]}}')
    assert found == messages.Take()


@pytest.mark.parametrize(("stream", "first"), [("stdout", 0), ("stderr", 1)])
def test_a_frame_with_output_is_its_stream_its_offset_and_its_bytes(
    stream: Stream, first: int
) -> None:
    data = bytes(range(256))
    message = Output(offset=2**40 + 5, data=data, stream=stream)
    frame = messages.encode(message)
    assert frame == bytes([first, 0, 0, 1, 0, 0, 0, 0, 5]) + data
