"""Where characters begin and end, against the decoder itself."""

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projects.output.characters import complete_length, length_of_rest

ANY_BYTES = st.binary(max_size=12)
TEXT = st.text(alphabet="aé€𝄞\x00", max_size=12).map(str.encode)


@given(ANY_BYTES)
def test_what_is_held_back_is_exactly_what_the_decoder_would_hold_back(data: bytes) -> None:
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    decoder.decode(data)
    assert complete_length(data) == len(data) - len(decoder.getstate()[0])


@given(TEXT, st.integers(min_value=0, max_value=40))
def test_a_cut_inside_a_character_moves_on_to_the_next(data: bytes, cut: int) -> None:
    cut = min(cut, len(data))
    skipped = length_of_rest(data[max(0, cut - 3) : cut], data[cut:])
    data[cut + skipped :].decode()
    assert skipped < 4
    assert length_of_rest(None, data[cut:]) == skipped


@pytest.mark.parametrize(
    ("before", "data", "expected"),
    [
        (b"abc", b"\x80\x80x", 0),
        (b"ab\xe2", b"\x82\xacx", 2),
        (b"\xe2\x82", b"\xacx", 1),
        (b"ab\xe2", b"\x82", 1),
        (b"ab\xe2", b"x\x82", 0),
        (b"ab\xe2", b"\x82\xac\x80x", 2),
        (b"ab\xc3", b"\xa9\xa9\xa9", 1),
        (b"", b"", 0),
        (None, b"\x80\x80\x80\x80", 3),
    ],
)
def test_only_bytes_that_belong_to_an_earlier_character_are_skipped(
    before: bytes | None, data: bytes, expected: int
) -> None:
    assert length_of_rest(before, data) == expected
