"""What one call types."""

import pytest

from projects.policy.typed_input import Typing


@pytest.mark.parametrize(
    ("typing", "is_unentered"),
    [
        (Typing(data=b"yes"), True),
        (Typing(data=b"yes\n"), False),
        (Typing(data=b"yes\r"), False),
        (Typing(data=b"yes", keys=("enter",)), False),
        (Typing(data=b"yes", eof=True), False),
        (Typing(keys=("up",)), False),
        (Typing(secret="sudo"), False),
        (Typing(), False),
    ],
)
def test_only_text_without_a_key_behind_it_is_unentered(typing: Typing, is_unentered: bool) -> None:
    assert typing.is_unentered is is_unentered
