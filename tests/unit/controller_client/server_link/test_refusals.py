"""A command that no holder gets is answered all the same, under its own numbers."""

import pytest

from controller_client.protocol.messages import (
    CommandAck,
    Failure,
    InputAck,
    PauseLifetime,
    Resize,
    SendInput,
    TerminateCmd,
)
from controller_client.server_link.refusals import (
    ENDED,
    EXPIRED,
    TOO_OLD,
    UNKNOWN_SESSION,
    Command,
    refusal,
)

RESIZE = Resize(seq=7, session_id="s", rows=24, cols=80)
PAUSE = PauseLifetime(seq=7, session_id="s", is_paused=True, max_seconds=1.0)
TERMINATE = TerminateCmd(seq=7, session_id="s")


def test_an_input_is_refused_under_its_own_number() -> None:
    command = SendInput(seq=7, session_id="s", input_seq=3, data=b"x")
    answer = refusal(command, ENDED)
    assert isinstance(answer, InputAck)
    assert (answer.session_id, answer.command_seq, answer.input_seq) == ("s", 7, 3)
    assert (answer.accepted_bytes, answer.failure) == (0, ENDED)


@pytest.mark.parametrize(
    ("command", "failure"),
    [
        (RESIZE, ENDED),
        (PAUSE, ENDED),
        (PAUSE, TOO_OLD),
        (TERMINATE, UNKNOWN_SESSION),
        (TERMINATE, EXPIRED),
    ],
)
def test_another_command_is_refused_with_the_reason(command: Command, failure: Failure) -> None:
    answer = refusal(command, failure)
    assert isinstance(answer, CommandAck)
    assert (answer.session_id, answer.command_seq, answer.failure) == ("s", 7, failure)


def test_to_end_what_has_ended_succeeds() -> None:
    answer = refusal(TERMINATE, ENDED)
    assert isinstance(answer, CommandAck)
    assert (answer.command_seq, answer.failure) == (7, None)
