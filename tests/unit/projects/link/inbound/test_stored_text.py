"""Text of a host is stored without what acts on terminals, whatever its length."""

from projects.link.inbound.stored_text import stored_text


def test_escape_sequences_and_nul_are_not_stored() -> None:
    assert stored_text("a\0b\x1b[31mc\ud800", 9) == "a\N{REPLACEMENT CHARACTER}bc?"
    assert stored_text("\x1b[1m" * 30 + "x" * 90, 20) == "x" * 20


def test_a_text_that_a_host_makes_long_takes_a_moment() -> None:
    assert stored_text("x" * 120_000 + "\x9b1K" * 60_000, 512) == "x" * 512
