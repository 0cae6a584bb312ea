"""Values of results have no character that cannot be seen, or that acts on a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.terminal_text.unseen import without_controls
from projects.output.visible_values import shown_in


def test_a_value_has_no_character_that_acts_on_a_terminal() -> None:
    value = {
        "command": "echo \x1b]52;c;eA==\x07\r\x9b31m\n\tx",
        "metadata": {"\x1b[1m": ["\u202ea", 7, None]},
        "raw": "\x1b[1m",
    }
    assert shown_in(value, frozenset({"raw"})) == {
        "command": "echo \\u{001b}]52;c;eA==\\u{0007}\\u{000d}\\u{009b}31m\n\tx",
        "metadata": {"\\u{001b}[1m": ["\\u{202e}a", 7, None]},
        "raw": "\x1b[1m",
    }


@given(st.text(), st.text("ab\\u0 \n\t\r\x7f\x1b\u202e\ud800"))
def test_a_value_is_shown_as_each_of_its_texts_is(name: str, text: str) -> None:
    assert shown_in({name: [text, 1]}) == {without_controls(name): [without_controls(text), 1]}
