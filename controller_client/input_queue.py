"""Inputs of one session on their way into the kernel: in order, each at most once, acknowledged only when all of it was taken.

A program that does not read its input stops the queue, never the holder. After INPUT_BLOCKED_SECONDS without progress an input is
withdrawn: what the kernel took stays taken and is counted in ``accepted_bytes``, the rest is never typed.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec

from controller_client.protocol.limits import INPUT_BLOCKED_SECONDS
from controller_client.protocol.messages import Failure, InputAck, SendInput
from controller_client.protocol.resume import InputSequencer
from controller_client.terminal_input import InputRefused, is_interrupt

REPEATED_ACKS: Final = 8
"""How many answers are given once more to each daemon that connects."""


class InputTarget(Protocol):
    """Where inputs go."""

    def encode(self, command: SendInput) -> bytes:
        """The bytes to type, as things are now. Raises InputRefused."""
        ...

    def type_bytes(self, data: bytes) -> int:
        """How many of them the kernel took."""
        ...

    def on_taken(self, command: SendInput) -> None:
        """The kernel has all of it."""
        ...

    def interrupt(self, command: SendInput) -> bool:
        """Interrupt the program past everything that waits to be read; False if it has to be typed instead."""
        ...


@dataclass
class _Pending:
    command: SendInput
    since: float
    data: bytes | None = None
    taken: int = 0


class InputQueue:
    """Every method that takes ``now`` returns the acknowledgements that are due."""

    def __init__(self, session_id: str, target: InputTarget) -> None:
        self._session_id = session_id
        self._target = target
        self._sequencer = InputSequencer()
        self._pending: deque[_Pending] = deque()
        self._answers = b""
        self._progress_at = 0.0
        self._is_torn = False

    @property
    def settled(self) -> int:
        """Number of the last input that was taken or refused."""
        return self._sequencer.settled

    @property
    def last_acks(self) -> list[InputAck]:
        """The newest answers, oldest first: a connection that died may have taken them with it."""
        return self._sequencer.last_acks(REPEATED_ACKS)

    @property
    def is_blocked(self) -> bool:
        """Something waits for the kernel to have room."""
        return bool(self._pending or self._answers)

    @property
    def deadline(self) -> float | None:
        """When the oldest input is to be given up."""
        return max(self._pending[0].since, self._progress_at) + INPUT_BLOCKED_SECONDS if self._pending else None

    def submit(self, command: SendInput, now: float) -> list[InputAck]:
        """An input arrived, perhaps again."""
        verdict = self._sequencer.classify(command.input_seq)
        if verdict == "duplicate":
            return self._answer_again(command)
        if verdict == "out_of_order":
            return [self._ack(command, failure=_out_of_order(self.settled + 1))]
        acks: list[InputAck] = []
        if is_interrupt(command) and self._target.interrupt(command):
            acks = self.withdraw_all()
            return [*acks, self._settle(self._ack(command, accepted_bytes=1))]
        self._pending.append(_Pending(command, since=now))
        return self.advance(now)

    def advance(self, now: float) -> list[InputAck]:
        """Type as much as the kernel takes."""
        acks: list[InputAck] = []
        self._type_answers()
        while self._pending:
            head = self._pending[0]
            if (refusal := self._refusal_of(head.command)) is not None:
                acks.append(self._finish(failure=refusal))
                continue
            try:
                data = self._encoded(head)
            except InputRefused as error:
                acks.append(self._finish(failure=error.failure))
                continue
            self._type(head, now)
            if head.taken < len(data):
                break
            self._target.on_taken(head.command)
            acks.append(self._finish())
            self._type_answers()
        return acks

    def expire(self, now: float) -> list[InputAck]:
        """Give up what has waited too long, and whatever waited behind it for as long."""
        acks: list[InputAck] = []
        while (deadline := self.deadline) is not None and now >= deadline:
            acks.append(self._finish(failure=_BLOCKED))
            acks += self.advance(now)
        return acks

    def withdraw_all(self, failure: Failure | None = None) -> list[InputAck]:
        """Nothing that still waits is going to be typed."""
        self._answers = b""
        acks = []
        while self._pending:
            acks.append(self._finish(failure=failure or _BLOCKED))
        return acks

    def refuse(self, command: SendInput, failure: Failure) -> list[InputAck]:
        """Answer an input that can no longer be applied."""
        verdict = self._sequencer.classify(command.input_seq)
        if verdict == "duplicate":
            return self._answer_again(command)
        ack = self._ack(command, failure=failure)
        # Kept, so that it can be answered again if this answer is lost with its connection.
        return [self._settle(ack) if verdict == "apply" else ack]

    def answer(self, data: bytes) -> None:
        """Type what the terminal itself says (its answer to a query): not in the middle of an input."""
        self._answers += data
        self._type_answers()

    def _encoded(self, head: _Pending) -> bytes:
        """The bytes that are meant. A secret is asked about again whenever some of it is to be typed: the question may be over."""
        if head.data is None or head.command.secret is not None:
            data = self._target.encode(head.command)
            head.data = data if head.data is None or not head.taken else head.data
        return head.data

    def _type(self, head: _Pending, now: float) -> None:
        if head.data is not None and head.taken < len(head.data):
            taken = self._target.type_bytes(head.data[head.taken :])
            if taken:
                head.taken += taken
                self._progress_at = now

    def _type_answers(self) -> None:
        if self._answers and not (self._pending and self._pending[0].taken):
            self._answers = self._answers[self._target.type_bytes(self._answers) :]

    def _refusal_of(self, command: SendInput) -> Failure | None:
        """Why the host's policy keeps an input back. What was checked as a whole line is none behind the beginning of another."""
        return command.refused or (_TORN if command.is_line_checked and self._is_torn and not is_interrupt(command) else None)

    def _finish(self, failure: Failure | None = None) -> InputAck:
        head = self._pending.popleft()
        self._is_torn |= failure is not None and head.taken > 0
        return self._settle(self._ack(head.command, accepted_bytes=head.taken, failure=failure))

    def _settle(self, ack: InputAck) -> InputAck:
        self._sequencer.settle(ack)
        return ack

    def _ack(self, command: SendInput, *, accepted_bytes: int = 0, failure: Failure | None = None) -> InputAck:
        return InputAck(
            session_id=self._session_id,
            command_seq=command.seq,
            input_seq=command.input_seq,
            accepted_bytes=accepted_bytes,
            failure=failure,
        )

    def _answer_again(self, command: SendInput) -> list[InputAck]:
        settled = self._sequencer.settled_ack(command.input_seq)
        return [msgspec.structs.replace(settled, command_seq=command.seq)] if settled is not None else []


_TORN = Failure(
    code="COMMAND_NOT_ALLOWED", message="an earlier input was typed in part, so no line can be checked any more; start a new session"
)
_BLOCKED = Failure(code="INPUT_BLOCKED", message="the program does not read its input; what it had not taken was withdrawn")


def _out_of_order(expected: int) -> Failure:
    return Failure(code="INPUT_OUT_OF_ORDER", message=f"input {expected} has to come first")
