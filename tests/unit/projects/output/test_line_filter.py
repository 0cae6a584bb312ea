"""A search by blocks finds the same lines as one line by line, for any bytes in any pieces and any
expression.
"""

from collections.abc import Iterator

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from projects.output import line_filter, plain_lines
from projects.output.line_filter import LineFilter, Passed, block_pattern
from projects.output.plain_lines import Line, LineSplitter

PATTERNS = [
    "foo",
    "(?i)FOO",
    "^foo",
    "foo$",
    "^$",
    "^foo bar$",
    "o b",
    "o\\s+b",
    "[^a]b",
    "\\bbar\\b",
    "f.o",
    "é",
    "\\x{fffd}",
    "foo|^bar",
    "(?:foo){2}",
    "\\Afoo",
    "foo\\z",
    "(?s)o.b",
    "(?-m)^foo",
    "(?P<name>bar)$",
    "",
    "\t",
    "0m",
    "\\W$",
]
PARTS = [
    b"foo",
    b"bar",
    b" ",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b"\t",
    b"\x1b[31m",
    b"\x1b[0m",
    b"\x1b[K",
    b"\x1b[2K",
    b"\x1b[5C",
    b"\x1b]0;t\x07",
]
PARTS += [
    b"\xc3\xa9",
    b"\xc3",
    b"\xa9",
    b"\xc2\x85",
    b"\xff",
    b"\x00",
    b"\x7f",
    b"\x08",
    b"f",
    b"o",
    b"b" * 40,
]


def shown(lines: Iterator[Line | Passed], found: list[tuple[int, str, bool]]) -> None:
    for line in lines:
        is_passed = isinstance(line, Passed)
        found += [
            (each.offset, each.text, is_passed)
            for each in (line.lines() if isinstance(line, Passed) else [line])
        ]


@pytest.mark.parametrize("max_line_bytes", [24, 65_536])
@settings(max_examples=250, deadline=None)
@given(
    pieces=st.lists(st.lists(st.sampled_from(PARTS), max_size=30).map(b"".join), max_size=6),
    pattern=st.sampled_from(PATTERNS),
    gap=st.booleans(),
)
def test_the_same_lines_are_found_as_line_by_line(
    max_line_bytes: int, pieces: list[bytes], pattern: str, gap: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for module in (plain_lines, line_filter):
            patch.setattr(module, "MAX_LINE_BYTES", max_line_bytes)
        of_blocks = block_pattern(pattern)
        by_blocks = LineFilter(re2.compile(of_blocks) if of_blocks is not None else None, 7)
        by_lines = LineSplitter(7)
        compiled = re2.compile(pattern)
        filtered: list[tuple[int, str, bool]] = []
        plain: list[tuple[int, str, bool]] = []
        for number, piece in enumerate(pieces):
            shown(by_blocks.feed(piece), filtered)
            shown(by_lines.feed(piece), plain)
            if gap and number == 2:
                shown(by_blocks.finish(10_000), filtered)
                shown(by_lines.finish(10_000), plain)
        shown(by_blocks.finish(), filtered)
        shown(by_lines.finish(), plain)
    assert [line[:2] for line in filtered] == [line[:2] for line in plain]
    assert not [line for line in filtered if line[2] and compiled.search(line[1])]


def test_whole_blocks_are_passed_over_and_their_last_lines_are_known() -> None:
    data = b"".join(b"\x1b[32mline\x1b[0m %d\r\n" % number for number in range(20_000))
    found = list(LineFilter(re2.compile("(?m)^nothing"), 0).feed(data))
    assert all(isinstance(each, Passed) for each in found)
    assert sum(len(each.data) for each in found if isinstance(each, Passed)) == len(data)
    last = found[-1]
    assert isinstance(last, Passed)
    assert [line.text for line in last.last_lines(3)] == ["line 19997", "line 19998", "line 19999"]
    assert last.last_lines(0) == []
    assert len(Passed(0, b"a\nb\n").last_lines(9)) == 2
