"""Holder side of input: each input is applied at most once, in order, and answered as often as it is asked for."""

from typing import Final, Literal

from controller_client.protocol.errors import LocalProtocolError
from controller_client.protocol.messages import InputAck

InputVerdict = Literal["apply", "duplicate", "out_of_order"]
KEPT_ACKS: Final = 64


class InputSequencer:
    """Numbers inputs 1, 2, 3, …; an input is *claimed* when it is to be applied and *settled* when its INPUT_ACK exists.

    ``settled`` is the number up to which every input is settled.
    """

    def __init__(self, settled: int = 0, *, kept_acks: int = KEPT_ACKS) -> None:
        self.settled = settled
        self._claimed = settled
        self._kept_acks = kept_acks
        self._acks: dict[int, InputAck] = {}

    def classify(self, input_seq: int) -> InputVerdict:
        """What to do with the input that arrived.

        ``apply`` is said once per number and claims it: apply it, then ``settle`` it. ``duplicate``: answer with ``settled_ack``,
        or, where there is none because the input is still being applied, not at all. ``out_of_order``: refuse it; nothing changed.
        """
        if input_seq == self._claimed + 1:
            self._claimed = input_seq
            return "apply"
        return "duplicate" if 0 < input_seq <= self._claimed else "out_of_order"

    def settle(self, ack: InputAck) -> None:
        """The claimed input is applied or refused for good. Raises LocalProtocolError unless it is claimed and unsettled."""
        if not self.settled < ack.input_seq <= self._claimed or ack.input_seq in self._acks:
            raise LocalProtocolError(f"input {ack.input_seq} is not waiting to be settled")
        self._acks[ack.input_seq] = ack
        while self.settled + 1 in self._acks:
            self.settled += 1
        # Only answers below the unbroken row are dropped: above it, being kept is what marks an input as settled.
        for seq in [seq for seq in self._acks if seq <= self.settled - self._kept_acks]:
            del self._acks[seq]

    def last_acks(self, count: int) -> list[InputAck]:
        """The answers to the last inputs settled, oldest first."""
        return [self._acks[seq] for seq in sorted(self._acks)[-count:]]

    def settled_ack(self, input_seq: int) -> InputAck | None:
        """The answer to one of the last inputs settled; None if it is not settled or too old."""
        return self._acks.get(input_seq)
