"""The inputs of one session on their way into the kernel.

The queue promises three things: inputs are typed in the order of their numbers, each input is typed
at most once, and an input is acknowledged as taken only when the kernel has all of its bytes.

Only the first input of the queue is typed, and :meth:`InputQueue._advance_head` does that step by
step. The queue follows these rules:

* **Blocked.** A program that does not read stops this queue, never the holder. After
  INPUT_BLOCKED_SECONDS without progress the first input fails with INPUT_BLOCKED. What the kernel
  took stays taken and is counted in ``accepted_bytes``; the rest is never typed.
* **Cut.** An input is *cut* when it fails after the kernel took a part of it. The part stays in the
  terminal as the beginning of a line, and the next input would continue that line. So after a cut
  an input that the host's policy allowed as a whole line is refused: the program would read another
  line than the policy saw. Ctrl-c is still typed.
* **Secrets.** Whether a secret may be typed is asked again before every write of it, because the
  question can end while the kernel takes the secret in parts. Then the rest is not typed. A secret
  is not typed behind a line that was begun and not ended: the program would read both as one.
* **Replies.** Some output asks the terminal a question, such as where the cursor is, and the
  terminal's reply is typed like an input. A reply goes in front of an input or behind it, never
  between two parts of one: :meth:`InputQueue._type_replies` is the only place that types replies.
* **Interrupts.** The target may interrupt the program at once for a ctrl-c. The inputs that wait
  then fail, as they would in a terminal that a person interrupts.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final, Protocol

from controller_client.holder.input.answers import InputAnswers
from controller_client.holder.input.keys import InputRefused, is_interrupt
from controller_client.protocol.limits import INPUT_BLOCKED_SECONDS
from controller_client.protocol.messages import Failure, InputAck, SendInput

# What the line discipline of a terminal holds.
_MAX_REPLY_BYTES: Final = 4096
_AFTER_CUT: Final = Failure(
    code="COMMAND_NOT_ALLOWED",
    message="an input was typed in part, so no line can be checked any more; start a new session",
)
_BLOCKED: Final = Failure(
    code="INPUT_BLOCKED",
    message="the program does not read its input; what it had not taken was withdrawn",
)
_BEHIND_PART: Final = (
    "a line was begun here and not ended, and the program would read the secret as the rest of it; "
    "end the line first, or clear it with ctrl-u on a terminal"
)


class InputTarget(Protocol):
    """The terminal or pipe of a program, as the queue needs it."""

    def encode(self, command: SendInput) -> bytes:
        """Return the bytes to type for an input, as the terminal is set now.

        Raises InputRefused if the input may not be typed now.
        """
        ...

    def type_bytes(self, data: bytes) -> int:
        """Write ``data`` without blocking; return how many bytes the kernel took, or 0."""
        ...

    def is_free(self) -> bool:
        """Return False while something else has to be typed before any input."""
        return True

    def holds_part(self) -> bool:
        """Return True if a line was begun and not ended: a secret would be joined to it."""
        return False

    def on_taken(self, command: SendInput) -> None:
        """Called when the kernel has the last byte of an input."""
        ...

    def interrupt(self, command: SendInput) -> bool:
        """Interrupt the program at once, ahead of the input that it has not read.

        Return False if ctrl-c is to be typed in its turn instead.
        """
        ...


@dataclass
class _Pending:
    """An input that is not settled.

    ``since`` is when it came, ``data`` is None until its bytes are known, and ``taken`` counts
    those that the kernel has.
    """

    command: SendInput
    since: float
    data: bytes | None = None
    taken: int = 0

    @property
    def is_started(self) -> bool:
        """True if the kernel has a part of the input."""
        return self.taken > 0


class InputQueue:
    """Queues the inputs of one session and types them as the kernel takes them.

    The holder has one thread. It calls :meth:`submit` for each input of the daemon, :meth:`advance`
    when the kernel has room, and :meth:`expire` when :attr:`deadline` has come.

    Times are seconds of one monotonic clock. The acknowledgements that a method returns are to be
    sent to the daemon in that order.
    """

    def __init__(self, answers: InputAnswers, target: InputTarget) -> None:
        self._answers = answers
        self._target = target
        self._pending: deque[_Pending] = deque()
        # The bytes of replies that the kernel has not taken yet.
        self._replies = b""
        # The last time when the kernel took bytes of an input.
        self._progress_at = 0.0
        # True after a cut, for the rest of the session.
        self._has_cut = False

    @property
    def is_blocked(self) -> bool:
        """True if an input or a reply waits for room in the kernel."""
        return bool(self._pending or self._replies)

    @property
    def deadline(self) -> float | None:
        """The moment when :meth:`expire` fails the first input; None if no input waits."""
        if not self._pending:
            return None
        return max(self._pending[0].since, self._progress_at) + INPUT_BLOCKED_SECONDS

    def submit(self, command: SendInput, now: float) -> list[InputAck]:
        """Take an input from the daemon, which may send the same input more than once."""
        answered = self._answers.receive(command)
        if answered is not None:
            return answered
        is_allowed = self._refusal_of(command) is None
        if is_allowed and is_interrupt(command) and self._target.interrupt(command):
            withdrawn = self.withdraw_all()
            return [*withdrawn, self._answers.settle(command, accepted_bytes=1)]
        self._pending.append(_Pending(command, since=now))
        return self.advance(now)

    def advance(self, now: float) -> list[InputAck]:
        """Type as much as the kernel takes. Call it whenever the kernel may have room."""
        acks: list[InputAck] = []
        self._type_replies()
        while self._pending:
            ack = self._advance_head(self._pending[0], now)
            if ack is None:
                break
            acks.append(ack)
            self._type_replies()
        return acks

    def expire(self, now: float) -> list[InputAck]:
        """Fail the first input if its deadline is over, then go on with the inputs behind it."""
        acks: list[InputAck] = []
        while (deadline := self.deadline) is not None and now >= deadline:
            acks.append(self._finish_head(failure=_BLOCKED))
            acks += self.advance(now)
        return acks

    def withdraw_all(self, failure: Failure = _BLOCKED) -> list[InputAck]:
        """Fail every input that waits, with ``failure``, and drop the replies that wait."""
        self._replies = b""
        return [self._finish_head(failure=failure) for _ in range(len(self._pending))]

    def reply(self, data: bytes) -> None:
        """Type the terminal's reply to a query in the program's output.

        A program that asks and never reads gets no more replies than a terminal keeps.
        """
        if len(self._replies) < _MAX_REPLY_BYTES:
            self._replies += data
        self._type_replies()

    # ---- the first input of the queue

    def _advance_head(self, head: _Pending, now: float) -> InputAck | None:
        """Take the first input as far as it goes.

        Returns its acknowledgement once it is settled; None while the kernel has no room for it.
        """
        # 1. The policy: an input that the daemon or a cut forbids is settled in its turn.
        failure = self._refusal_of(head.command)
        if failure is not None:
            return self._finish_head(failure=failure)
        # 2. The bytes. The target may refuse them, too: for a secret, again before every write.
        try:
            data = self._bytes_of(head)
        except InputRefused as error:
            return self._finish_head(failure=error.failure)
        # 3. The kernel. An input without bytes, such as the end of the input, keeps its turn, too.
        if not self._target.is_free():
            return None
        if head.taken < len(data):
            taken = self._target.type_bytes(data[head.taken :])
            if taken:
                head.taken += taken
                self._progress_at = now
        if head.taken < len(data):
            return None
        # 4. Done.
        self._target.on_taken(head.command)
        return self._finish_head()

    def _refusal_of(self, command: SendInput) -> Failure | None:
        if command.refused is not None:
            return command.refused
        if self._has_cut and command.is_line_checked and not is_interrupt(command):
            return _AFTER_CUT
        return None

    def _bytes_of(self, head: _Pending) -> bytes:
        """The bytes of an input. Raises InputRefused.

        A started input keeps the bytes it was started with: the terminal's modes, by which inputs
        are encoded, can change between two parts.
        """
        if head.data is not None and head.command.secret is None:
            return head.data
        # Encoding a secret also checks that it may be typed now, so it precedes every write.
        data = self._target.encode(head.command)
        if head.data is not None and head.is_started:
            return head.data
        if head.command.secret is not None and self._target.holds_part():
            raise InputRefused("NOT_ASKING_FOR_SECRET", _BEHIND_PART)
        head.data = data
        return data

    def _finish_head(self, failure: Failure | None = None) -> InputAck:
        """Settle the first input and remove it: taken, or failed with ``failure``."""
        head = self._pending.popleft()
        if failure is not None and head.is_started:
            self._has_cut = True
        return self._answers.settle(head.command, accepted_bytes=head.taken, failure=failure)

    def _type_replies(self) -> None:
        is_inside_input = bool(self._pending) and self._pending[0].is_started
        if self._replies and not is_inside_input:
            taken = self._target.type_bytes(self._replies)
            self._replies = self._replies[taken:]
