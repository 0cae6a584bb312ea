"""The answers to the inputs of one session.

Each answer is kept for a while, because the connection that it was sent on may lose it: an input
that comes again gets the answer that it got before.
"""

from collections.abc import Callable
from typing import Final

import msgspec

from controller_client.protocol.messages import Failure, HostTime, InputAck, SendInput
from controller_client.protocol.resume import InputSequencer

REPEATED_ACKS: Final = 8
"""Number of acknowledgements that are sent again to each daemon that connects."""
_FORGOTTEN: Final = Failure(
    code="INPUT_UNCONFIRMED",
    message="the host has answered this input before, and does not keep so old an answer",
)
Place = tuple[int, HostTime]
"""The place of an answer in a recording: the bytes that the program had written, and the time."""


class InputAnswers:
    """Has each input applied once, in the order of numbers, and makes its acknowledgement.

    ``place`` tells where in the recording the session is now.
    """

    def __init__(self, session_id: str, place: "Callable[[], Place] | None" = None) -> None:
        self._session_id = session_id
        self._place = place
        self._sequencer = InputSequencer()

    @property
    def settled(self) -> int:
        """The number up to which every input was taken or refused."""
        return self._sequencer.settled

    @property
    def last(self) -> list[InputAck]:
        """The last acknowledgements, oldest first."""
        return self._sequencer.last_acks(REPEATED_ACKS)

    def receive(self, command: SendInput, ended: Failure | None = None) -> list[InputAck] | None:
        """Return None if the input is to be applied now, once; else what to answer at once.

        That is the first answer again, under the number of the repeated command, or that it is not
        known any more; nothing while the input still waits; or a failure for an input that comes
        out of order (``ended``, if given).
        """
        verdict = self._sequencer.classify(command.input_seq)
        if verdict == "apply":
            return None
        if verdict == "out_of_order":
            message = f"input {self.settled + 1} has to come first"
            out_of_order = Failure(code="INPUT_OUT_OF_ORDER", message=message)
            return [self._ack(command, 0, ended or out_of_order)]
        settled = self._sequencer.settled_ack(command.input_seq)
        if settled is not None:
            return [msgspec.structs.replace(settled, command_seq=command.seq)]
        is_forgotten = command.input_seq <= self.settled
        return [self._ack(command, 0, _FORGOTTEN)] if is_forgotten else []

    def settle(
        self, command: SendInput, *, accepted_bytes: int = 0, failure: Failure | None = None
    ) -> InputAck:
        """Answer an input for good, and keep the answer."""
        ack = self._ack(command, accepted_bytes, failure)
        self._sequencer.settle(ack)
        return ack

    def refuse(self, command: SendInput, ended: Failure) -> list[InputAck]:
        """Answer an input that came when no program was there any more; ``ended`` says so."""
        answered = self.receive(command, ended)
        return [self.settle(command, failure=ended)] if answered is None else answered

    def _ack(self, command: SendInput, accepted_bytes: int, failure: Failure | None) -> InputAck:
        offset, at = self._place() if self._place is not None else (None, None)
        return InputAck(
            session_id=self._session_id,
            command_seq=command.seq,
            input_seq=command.input_seq,
            accepted_bytes=accepted_bytes,
            failure=failure,
            offset=offset,
            at=at,
        )
