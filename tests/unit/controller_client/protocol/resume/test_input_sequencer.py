"""Each input is applied at most once, in order, and its answer can be had again."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.messages import Failure, InputAck
from controller_client.protocol.resume import InputSequencer
from tests.support.running.property_settings import STEADY


def _ack(input_seq: int, *, failure: Failure | None = None) -> InputAck:
    return InputAck(
        id=f"ack-{input_seq}",
        session_id="s",
        command_seq=100 + input_seq,
        input_seq=input_seq,
        accepted_bytes=3,
        failure=failure,
    )


def test_the_next_input_is_to_be_applied_and_nothing_else() -> None:
    sequencer = InputSequencer(settled=4)
    assert sequencer.classify(6) == "out_of_order"
    assert sequencer.classify(4) == "duplicate"
    assert sequencer.classify(0) == "out_of_order"
    assert sequencer.classify(5) == "apply"


def test_an_input_still_being_applied_is_not_applied_again() -> None:
    sequencer = InputSequencer()
    assert sequencer.classify(1) == "apply"
    assert sequencer.classify(1) == "duplicate"
    assert sequencer.settled_ack(1) is None
    assert sequencer.settled == 0


def test_inputs_may_queue_up_behind_one_being_applied() -> None:
    sequencer = InputSequencer()
    assert [sequencer.classify(seq) for seq in (1, 2, 3)] == ["apply"] * 3
    sequencer.settle(_ack(1))
    assert sequencer.settled == 1
    assert sequencer.classify(4) == "apply"


def test_a_settled_input_is_answered_as_before_also_when_it_was_refused() -> None:
    sequencer = InputSequencer()
    refused = _ack(1, failure=Failure(code="INPUT_BLOCKED", message="it does not read"))
    sequencer.classify(1)
    sequencer.settle(refused)
    assert sequencer.classify(1) == "duplicate"
    assert sequencer.settled_ack(1) == refused


def test_an_input_settled_out_of_order_counts_once_all_before_it_are() -> None:
    sequencer = InputSequencer()
    for seq in (1, 2, 3):
        sequencer.classify(seq)
    sequencer.settle(_ack(3))
    assert (sequencer.settled, sequencer.settled_ack(3)) == (0, _ack(3))
    sequencer.settle(_ack(1))
    sequencer.settle(_ack(2))
    assert sequencer.settled == 3


@pytest.mark.parametrize("seq", [0, 1, 3])
def test_settling_an_input_that_is_not_claimed_is_our_error(seq: int) -> None:
    sequencer = InputSequencer()
    sequencer.classify(1)
    sequencer.settle(_ack(1))
    sequencer.classify(2)
    with pytest.raises(LocalProtocolError):
        sequencer.settle(_ack(seq))
    assert sequencer.settled == 1


def test_the_last_answers_are_kept_and_older_ones_are_not() -> None:
    sequencer = InputSequencer()
    for seq in range(1, 101):
        sequencer.classify(seq)
        sequencer.settle(_ack(seq))
    assert sequencer.settled_ack(36) is None
    assert [sequencer.settled_ack(seq) for seq in range(37, 101)] == [
        _ack(seq) for seq in range(37, 101)
    ]
    assert sequencer.classify(36) == "duplicate"


class SequencerAgainstItsModel(RuleBasedStateMachine):
    """Inputs arrive in any order, as often as they like; they are applied one after the other."""

    KEPT = 4

    def __init__(self) -> None:
        super().__init__()
        self.sequencer = InputSequencer(kept_acks=self.KEPT)
        self.applying: list[int] = []
        self.applied: list[int] = []

    @rule(seq=st.integers(0, 30))
    def arrive(self, seq: int) -> None:
        self._arrive(seq)

    @rule()
    def arrive_next(self) -> None:
        self._arrive(len(self.applied) + len(self.applying) + 1)

    def _arrive(self, seq: int) -> None:
        known = len(self.applied) + len(self.applying)
        verdict = self.sequencer.classify(seq)
        assert verdict == (
            "apply" if seq == known + 1 else "duplicate" if 0 < seq <= known else "out_of_order"
        )
        if verdict == "apply":
            self.applying.append(seq)

    @precondition(lambda self: self.applying)
    @rule()
    def settle(self) -> None:
        seq = self.applying.pop(0)
        self.applied.append(seq)
        self.sequencer.settle(_ack(seq))

    @invariant()
    def inputs_are_applied_once_and_in_order(self) -> None:
        assert self.applied == list(range(1, len(self.applied) + 1))
        assert self.sequencer.settled == len(self.applied)
        for seq in self.applied[-self.KEPT :]:
            assert self.sequencer.settled_ack(seq) == _ack(seq)


TestSequencerAgainstItsModel = SequencerAgainstItsModel.TestCase
TestSequencerAgainstItsModel.settings = settings(STEADY, max_examples=50, stateful_step_count=40)
