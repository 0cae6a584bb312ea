"""The rules of a digest."""

from hypothesis import given
from hypothesis import strategies as st

from projects.output.digest import LAST_LINES, MAX_SHOWN, Digester


def of(*pieces: bytes, offset: int = 0) -> Digester:
    digester = Digester(offset)
    for piece in pieces:
        digester.feed(piece)
    return digester


def test_nothing_comes_to_nothing() -> None:
    digest = of(offset=7).digest()
    assert (digest.from_offset, digest.to_offset, digest.bytes, digest.lines, digest.prompt) == (
        7,
        7,
        0,
        0,
        None,
    )


def test_errors_and_warnings_are_counted_and_the_newest_shown_with_offsets() -> None:
    digest = of(
        b"".join(b"error %d\n" % number for number in range(30)) + b"warning: x\nerror or warning\n"
    ).digest()
    assert (digest.error_count, digest.warning_count) == (31, 1)
    assert [line.text for line in digest.errors] == [
        *(f"error {number}" for number in range(21, 30)),
        "error or warning",
    ]
    assert len(digest.errors) == MAX_SHOWN
    assert digest.warnings[0].offset == 10 * 8 + 20 * 9


def test_no_errors_and_longer_words_do_not_count_as_errors() -> None:
    digest = of(b"0 errors, 0 warnings\nno errors\nterror\nwithout warnings\nprewarned\n").digest()
    assert (digest.error_count, digest.warning_count) == (0, 0)


def test_names_of_exceptions_count() -> None:
    assert (
        of(b"ValueError: x\njava.io.IOException\nDeprecationWarning: y\n").digest().error_count == 2
    )


def test_progress_is_collapsed_and_a_last_line_without_an_end_is_a_prompt() -> None:
    digest = of(b"get: 1%\rget: 50%\rget: 100%\r\ndone\nproceed [y/N] ").digest()
    assert [line.text for line in digest.progress] == ["get: 100%"]
    assert (digest.lines, digest.prompt) == (3, "proceed [y/N]")
    assert digest.last_lines == ("get: 100%", "done", "proceed [y/N]")
    assert len(digest.last_lines) == LAST_LINES


def test_what_is_skipped_is_told_and_ends_a_line() -> None:
    digester = of(b"begun")
    digester.skip(100)
    digester.feed(b"error\n")
    digest = digester.digest()
    assert (digest.bytes, digest.skipped_bytes, digest.errors[0].offset, digest.lines) == (
        111,
        100,
        105,
        2,
    )


@given(st.lists(st.binary(max_size=40)))
def test_the_same_bytes_give_the_same_digest_however_they_come(pieces: list[bytes]) -> None:
    assert of(*pieces).digest() == of(b"".join(pieces)).digest()
