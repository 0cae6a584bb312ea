"""Lines and their offsets, however the bytes come."""

from hypothesis import given
from hypothesis import strategies as st

from projects.output.plain_lines import MAX_LINE_BYTES, Line, LineSplitter


def split(pieces: list[bytes], offset: int = 0) -> list[Line]:
    splitter = LineSplitter(offset)
    return [line for piece in pieces for line in splitter.feed(piece)] + list(splitter.finish())


@given(
    st.lists(st.binary(max_size=30).map(lambda data: data.replace(b"x", b"\n"))),
    st.integers(0, 1000),
)
def test_lines_put_together_are_the_bytes_and_stand_where_they_say(
    pieces: list[bytes], offset: int
) -> None:
    data, lines = b"".join(pieces), split(pieces, offset)
    assert b"".join(line.raw + b"\n" * line.is_ended for line in lines) == data
    for line in lines:
        assert data[line.offset - offset :].startswith(line.raw)
    assert lines == split([data], offset)


def test_a_line_too_long_counts_as_several() -> None:
    data = b"a" * (2 * MAX_LINE_BYTES + 5) + b"\nb\n"
    for pieces in ([data], [data[:70_000], data[70_000:]]):
        lines = split(pieces)
        assert [(line.offset, len(line.raw), line.is_ended) for line in lines] == [
            (0, MAX_LINE_BYTES, False),
            (MAX_LINE_BYTES, MAX_LINE_BYTES, False),
            (2 * MAX_LINE_BYTES, 5, True),
            (2 * MAX_LINE_BYTES + 6, 1, True),
        ]


def test_after_a_gap_lines_begin_where_the_stream_goes_on() -> None:
    splitter = LineSplitter(10)
    assert list(splitter.feed(b"a\nb")) == [Line(10, b"a", True)]
    assert list(splitter.finish(100)) == [Line(12, b"b", False)]
    assert list(splitter.feed(b"c\n")) == [Line(100, b"c", True)]


def test_text_is_plain_and_redrawn_parts_are_in_their_last_state() -> None:
    assert Line(0, b"\x1b[31mred\x1b[0m\r", True).text == "red"
    assert (Line(0, b"10%\r100%", True).text, Line(0, b"10%\r100%", True).is_redrawn) == (
        "100%",
        True,
    )
    assert not Line(0, b"dos\r", True).is_redrawn
    assert Line(0, "é\xff".encode("latin-1"), True).text == "\N{REPLACEMENT CHARACTER}" * 2
