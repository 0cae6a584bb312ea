"""Holder side of input: each input is applied at most once, in order, and its answer is kept."""

from typing import Final, Literal

from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.messages import InputAck

InputVerdict = Literal["apply", "duplicate", "out_of_order"]
KEPT_ACKS: Final = 64


class InputSequencer:
    """The order of inputs, which are numbered 1, 2, 3, …

    An input is *claimed* once it is to be applied, and *settled* once its INPUT_ACK exists.
    ``settled`` is the number up to which every input is settled.
    """

    def __init__(self, settled: int = 0, *, kept_acks: int = KEPT_ACKS) -> None:
        self.settled = settled
        self._claimed = settled
        self._kept_acks = kept_acks
        self._acks: dict[int, InputAck] = {}

    def classify(self, input_seq: int) -> InputVerdict:
        """Return how to treat an input that arrived.

        ``apply``: returned once for each number, which is claimed by this. Apply the input, then
        ``settle`` it. ``duplicate``: answer with ``settled_ack``. If that is None, the input is
        still being applied: do not answer. ``out_of_order``: refuse the input; nothing changed.
        """
        if input_seq == self._claimed + 1:
            self._claimed = input_seq
            return "apply"
        return "duplicate" if 0 < input_seq <= self._claimed else "out_of_order"

    def settle(self, ack: InputAck) -> None:
        """Record the answer to a claimed input, which was applied or refused for good.

        Raises LocalProtocolError unless it is claimed and unsettled.
        """
        if not self.settled < ack.input_seq <= self._claimed or ack.input_seq in self._acks:
            raise LocalProtocolError(f"input {ack.input_seq} is not waiting to be settled")
        self._acks[ack.input_seq] = ack
        while self.settled + 1 in self._acks:
            self.settled += 1
        # Only answers up to ``settled`` are dropped. Above it, a kept answer is the only mark of an
        # input that is settled.
        for seq in [seq for seq in self._acks if seq <= self.settled - self._kept_acks]:
            del self._acks[seq]

    def last_acks(self, count: int) -> list[InputAck]:
        """Return the answers to the last ``count`` settled inputs, oldest first."""
        return [self._acks[seq] for seq in sorted(self._acks)[-count:]]

    def settled_ack(self, input_seq: int) -> InputAck | None:
        """Return the answer to an input; None if it is not settled, or too old."""
        return self._acks.get(input_seq)
