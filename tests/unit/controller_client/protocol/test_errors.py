"""The errors of the protocol: a tree, stable codes, texts built from fields."""

import pytest

from controller_client.protocol import errors
from controller_client.protocol.errors import (
    AckAhead,
    BadFrame,
    FrameTooLarge,
    IllegalTransition,
    LocalProtocolError,
    OffsetAhead,
    ProtocolError,
    RemoteProtocolError,
    UnknownKeyName,
    WindowViolated,
)

LEAVES = [
    (
        IllegalTransition("LOST", "RUNNING"),
        "ILLEGAL_TRANSITION",
        "a session in state LOST cannot become RUNNING",
    ),
    (UnknownKeyName("secret"), "UNKNOWN_KEY_NAME", "no key has this name of 6 characters"),
    (BadFrame("unknown message type"), "BAD_FRAME", "bad frame: unknown message type"),
    (FrameTooLarge(300, 256), "FRAME_TOO_LARGE", "frame of 300 bytes is over the limit of 256"),
    (WindowViolated(300, 256), "WINDOW_VIOLATED", "300 bytes in flight in a window of 256"),
    (OffsetAhead("stdout", 5, 9), "OFFSET_AHEAD", "stdout jumped from 5 to 9 without a gap"),
    (AckAhead("stdout", 5, 9), "ACK_AHEAD", "stdout was acknowledged up to 9 when only 5 was sent"),
]


@pytest.mark.parametrize(("error", "code", "text"), LEAVES)
def test_a_leaf_has_its_code_and_its_text(error: ProtocolError, code: str, text: str) -> None:
    assert (error.code, str(error)) == (code, text)


def test_codes_are_unique() -> None:
    classes = [
        each
        for each in vars(errors).values()
        if isinstance(each, type) and issubclass(each, ProtocolError)
    ]
    assert len({each.code for each in classes}) == len(classes)
    assert {type(error) for error, _, _ in LEAVES} == {
        each for each in classes if not each.__subclasses__()
    }


def test_the_docstring_draws_every_class_of_the_tree() -> None:
    assert errors.__doc__ is not None
    for name, each in vars(errors).items():
        if isinstance(each, type) and issubclass(each, ProtocolError):
            assert f" {name}" in errors.__doc__


def test_an_error_is_ours_or_the_peers_and_peer_errors_have_a_close_code() -> None:
    for error, _, _ in LEAVES:
        assert isinstance(error, LocalProtocolError) != isinstance(error, RemoteProtocolError)
    assert BadFrame("").close_code == OffsetAhead("stdout", 0, 1).close_code == 4400
    assert WindowViolated(2, 1).close_code == 4008
