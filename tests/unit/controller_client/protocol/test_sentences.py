"""Texts that become one line."""

from controller_client.protocol.sentences import sentences


def test_each_part_ends_before_the_next_begins() -> None:
    assert (
        sentences("this code is not valid", "Ask for a new one")
        == "this code is not valid. Ask for a new one."
    )
    assert (
        sentences("It ended.", "Really?", "See here:", "12 bytes")
        == "It ended. Really? See here: 12 bytes."
    )


def test_empty_parts_are_left_out() -> None:
    assert sentences("", " ", "Once ") == "Once."
    assert sentences() == ""
