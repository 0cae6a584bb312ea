"""The queue of inputs in front of a kernel that takes as much as it likes."""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller_client.holder.input.answers import REPEATED_ACKS, InputAnswers
from controller_client.holder.input.keys import InputRefused
from controller_client.holder.input.queue import InputQueue
from controller_client.protocol.limits import INPUT_BLOCKED_SECONDS
from controller_client.protocol.messages import Failure, HostTime, InputAck, SendInput
from controller_client.protocol.resume.input_sequencer import KEPT_ACKS


class Kernel:
    """Takes ``room`` bytes, then none until there is room again.

    Refuses inputs that start with ``!``.
    """

    def __init__(self, room: int = 1 << 30) -> None:
        self.room = room
        self.taken = b""
        self.interrupts = 0
        self.can_interrupt = False

    def encode(self, command: SendInput) -> bytes:
        if command.data.startswith(b"!"):
            raise InputRefused("REFUSED", "no")
        return command.data

    def type_bytes(self, data: bytes) -> int:
        count = min(self.room, len(data))
        self.room -= count
        self.taken += data[:count]
        return count

    def is_free(self) -> bool:
        return True

    def holds_part(self) -> bool:
        return False

    def on_taken(self, command: SendInput) -> None:
        pass

    def interrupt(self, command: SendInput) -> bool:
        self.interrupts += self.can_interrupt
        return self.can_interrupt


class Hiding(Kernel):
    """Takes secrets only while it hides what is typed."""

    is_hiding = True

    def encode(self, command: SendInput) -> bytes:
        if command.secret is not None and not self.is_hiding:
            raise InputRefused("NOT_ASKING_FOR_SECRET", "no")
        return command.secret or command.data


class Beginning(Hiding):
    """Has got a part of a line, if it says so."""

    has_begun = False

    def holds_part(self) -> bool:
        return self.has_begun


def _input(number: int, data: bytes = b"", seq: int = 0, **more: Any) -> SendInput:
    return SendInput(seq=seq or number, session_id="s", input_seq=number, data=data, **more)


def _told(acks: list[InputAck]) -> list[tuple[int, int, str | None]]:
    return [
        (ack.input_seq, ack.accepted_bytes, ack.failure.code if ack.failure else None)
        for ack in acks
    ]


def test_an_input_is_acknowledged_when_the_kernel_has_all_of_it() -> None:
    kernel, answers = Kernel(room=3), InputAnswers("s")
    queue = InputQueue(answers, kernel)
    assert queue.submit(_input(1, b"hello"), 0.0) == []
    assert queue.is_blocked
    kernel.room = 10
    assert _told(queue.advance(1.0)) == [(1, 5, None)]
    assert (kernel.taken, queue.is_blocked, answers.settled) == (b"hello", False, 1)


def test_what_is_left_of_a_secret_is_not_typed_once_the_question_is_over() -> None:
    kernel = Hiding(room=0)
    queue = InputQueue(InputAnswers("s"), kernel)
    assert queue.submit(_input(1, secret=b"hunter2"), 0.0) == []
    kernel.room = 3
    assert queue.advance(1.0) == []
    kernel.room, kernel.is_hiding = 10, False
    assert _told(queue.advance(2.0)) == [(1, 3, "NOT_ASKING_FOR_SECRET")]
    assert kernel.taken == b"hun"


def test_no_secret_is_typed_behind_a_line_that_was_begun() -> None:
    kernel = Beginning(room=0)
    queue = InputQueue(InputAnswers("s"), kernel)
    assert queue.submit(_input(1, secret=b"hunter2"), 0.0) == []
    # A reply of the terminal can begin the line while the secret waits for room.
    kernel.has_begun = True
    assert _told(queue.advance(1.0)) == [(1, 0, "NOT_ASKING_FOR_SECRET")]
    kernel.has_begun, kernel.room = False, 3
    assert queue.submit(_input(2, secret=b"hunter2"), 2.0) == []
    # The line that the secret itself began is no reason.
    kernel.has_begun, kernel.room = True, 10
    assert _told(queue.advance(3.0)) == [(2, 7, None)]
    assert kernel.taken == b"hunter2"


def test_inputs_wait_for_those_before_them() -> None:
    kernel = Kernel(room=0)
    queue = InputQueue(InputAnswers("s"), kernel)
    assert queue.submit(_input(1, b"one"), 0.0) + queue.submit(_input(2, b"two"), 0.0) == []
    kernel.room = 100
    assert _told(queue.advance(0.1)) == [(1, 3, None), (2, 3, None)]
    assert kernel.taken == b"onetwo"


def test_a_duplicate_is_answered_again_under_the_number_it_came_with() -> None:
    queue = InputQueue(InputAnswers("s"), Kernel())
    queue.submit(_input(1, b"x", seq=10), 0.0)
    (again,) = queue.submit(_input(1, b"x", seq=20), 0.0)
    assert (again.command_seq, again.accepted_bytes) == (20, 1)


def test_a_duplicate_of_an_input_too_old_is_answered_and_not_typed_again() -> None:
    kernel = Kernel()
    queue = InputQueue(InputAnswers("s"), kernel)
    for number in range(1, KEPT_ACKS + 2):
        queue.submit(_input(number, b"x"), 0.0)
    assert _told(queue.submit(_input(1, b"x"), 1.0)) == [(1, 0, "INPUT_UNCONFIRMED")]
    assert _told(queue.submit(_input(2, b"x"), 1.0)) == [(2, 1, None)]
    assert kernel.taken == b"x" * (KEPT_ACKS + 1)


def test_a_duplicate_of_an_input_that_still_waits_is_not_answered_yet() -> None:
    kernel = Kernel(room=0)
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"x"), 0.0)
    assert queue.submit(_input(1, b"x"), 0.0) == []
    kernel.room = 9
    assert _told(queue.advance(0.0)) == [(1, 1, None)]
    assert kernel.taken == b"x"


def test_a_refused_input_is_settled_and_the_next_one_goes_on() -> None:
    kernel = Kernel()
    queue = InputQueue(InputAnswers("s"), kernel)
    assert _told(queue.submit(_input(1, b"!"), 0.0)) == [(1, 0, "REFUSED")]
    assert _told(queue.submit(_input(3, b"c"), 0.0)) == [(3, 0, "INPUT_OUT_OF_ORDER")]
    assert _told(queue.submit(_input(2, b"b"), 0.0)) == [(2, 1, None)]
    assert kernel.taken == b"b"


def test_blocked_input_is_withdrawn_and_its_written_bytes_are_counted() -> None:
    kernel = Kernel(room=2)
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"hello"), 0.0)
    queue.submit(_input(2, b"late"), 6.0)
    assert queue.deadline == INPUT_BLOCKED_SECONDS
    assert queue.expire(9.9) == []
    assert _told(queue.expire(10.0)) == [(1, 2, "INPUT_BLOCKED")]
    assert queue.deadline == 6.0 + INPUT_BLOCKED_SECONDS
    kernel.room = 100
    assert _told(queue.advance(11.0)) == [(2, 4, None)]
    assert kernel.taken == b"helate"


def test_progress_postpones_the_deadline() -> None:
    kernel = Kernel(room=1)
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"abc"), 0.0)
    kernel.room = 1
    queue.advance(9.0)
    assert queue.deadline == 9.0 + INPUT_BLOCKED_SECONDS


def test_ctrl_c_overtakes_what_is_blocked_and_withdraws_it() -> None:
    kernel = Kernel(room=0)
    kernel.can_interrupt = True
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"blocked"), 0.0)
    assert _told(queue.submit(_input(2, keys=["ctrl-c"]), 1.0)) == [
        (1, 0, "INPUT_BLOCKED"),
        (2, 1, None),
    ]
    assert (kernel.interrupts, kernel.taken, queue.is_blocked) == (1, b"", False)


def test_ctrl_c_that_is_refused_overtakes_nothing() -> None:
    kernel = Kernel(room=0)
    kernel.can_interrupt = True
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"blocked"), 0.0)
    stopped = Failure(code="HOST_STOPPED", message="no")
    assert queue.submit(_input(2, keys=["ctrl-c"], refused=stopped), 1.0) == []
    kernel.room = 100
    assert _told(queue.advance(2.0)) == [(1, 7, None), (2, 0, "HOST_STOPPED")]
    assert (kernel.interrupts, kernel.taken) == (0, b"blocked")


def test_an_answer_of_the_terminal_never_lands_inside_an_input() -> None:
    kernel = Kernel(room=2)
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"hello"), 0.0)
    queue.reply(b"[R]")
    kernel.room = 100
    queue.submit(_input(2, b"next"), 0.0)
    assert kernel.taken == b"hello[R]next"


def test_a_reply_is_typed_before_the_input_behind_a_cut_one() -> None:
    kernel = Hiding(room=3)
    queue = InputQueue(InputAnswers("s"), kernel)
    assert queue.submit(_input(1, secret=b"hunter2"), 0.0) == []
    queue.reply(b"[R]")
    assert queue.submit(_input(2, b"next"), 0.0) == []
    kernel.room, kernel.is_hiding = 100, False
    acks = queue.advance(1.0)
    assert _told(acks) == [(1, 3, "NOT_ASKING_FOR_SECRET"), (2, 4, None)]
    assert kernel.taken == b"hun[R]next"


def test_after_the_end_an_old_answer_is_repeated_and_a_new_input_refused() -> None:
    answers = InputAnswers("s")
    InputQueue(answers, Kernel()).submit(_input(1, b"x"), 0.0)
    ended = Failure(code="SESSION_ENDED", message="over")
    assert _told(answers.refuse(_input(1, b"x"), ended)) == [(1, 1, None)]
    assert _told(answers.refuse(_input(9, b"z"), ended)) == [(9, 0, "SESSION_ENDED")]
    assert _told(answers.refuse(_input(2, b"y"), ended)) == [(2, 0, "SESSION_ENDED")]


def test_an_answer_tells_where_in_the_recording_it_was_given() -> None:
    places = iter([(5, HostTime(wall=1.0, clock=2.0)), (9, HostTime(wall=3.0, clock=4.0))])
    queue = InputQueue(InputAnswers("s", lambda: next(places)), Kernel())
    (first,) = queue.submit(_input(1, b"x"), 0.0)
    (refused,) = queue.submit(_input(3, b"x"), 0.0)
    (again,) = queue.submit(_input(1, b"x"), 0.0)
    assert (first.offset, first.at) == (5, HostTime(wall=1.0, clock=2.0))
    assert (refused.offset, refused.session_id) == (9, "s")
    assert (again.offset, again.at) == (first.offset, first.at)
    assert refused.failure is not None
    assert refused.failure.message == "input 2 has to come first"


def test_each_daemon_that_connects_is_told_the_last_answers_in_order() -> None:
    answers = InputAnswers("s")
    queue = InputQueue(answers, Kernel())
    for number in range(1, REPEATED_ACKS + 3):
        queue.submit(_input(number, b"x"), 0.0)
    assert [ack.input_seq for ack in answers.last] == list(range(3, REPEATED_ACKS + 3))


def test_a_program_that_asks_and_never_reads_gets_few_replies() -> None:
    kernel = Kernel(room=0)
    queue = InputQueue(InputAnswers("s"), kernel)
    for _ in range(5000):
        queue.reply(b"[R]")
    assert queue.is_blocked
    kernel.room = 1 << 20
    queue.advance(0.0)
    assert 4096 <= len(kernel.taken) < 4096 + len(b"[R]")
    assert not queue.is_blocked


def test_an_interrupt_drops_the_replies_that_wait() -> None:
    kernel = Kernel(room=0)
    kernel.can_interrupt = True
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.reply(b"[R]")
    assert _told(queue.submit(_input(1, keys=["ctrl-c"]), 0.0)) == [(1, 1, None)]
    kernel.room = 100
    queue.advance(0.0)
    assert (kernel.taken, queue.is_blocked, queue.deadline) == (b"", False, None)


class AnyKernel(RuleBasedStateMachine):
    """Whatever room the kernel has and whenever: inputs arrive whole, in order, once, or are cut
    and say so.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernel = Kernel(room=0)
        self.queue = InputQueue(InputAnswers("s"), self.kernel)
        self.now = 0.0
        self.sent: list[bytes] = []
        self.acks: dict[int, InputAck] = {}

    def _note(self, acks: list[InputAck]) -> None:
        for ack in acks:
            assert ack.input_seq not in self.acks
            self.acks[ack.input_seq] = ack

    @rule(data=st.binary(min_size=1, max_size=20))
    def submit(self, data: bytes) -> None:
        self.sent.append(data.replace(b"!", b"?"))
        self._note(self.queue.submit(_input(len(self.sent), self.sent[-1]), self.now))

    @rule(room=st.integers(1, 30))
    def make_room(self, room: int) -> None:
        self.kernel.room = room
        self._note(self.queue.advance(self.now))

    @rule(seconds=st.floats(0.1, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self._note(self.queue.expire(self.now))

    @invariant()
    def taken_is_what_was_acknowledged(self) -> None:
        expected = b""
        for number, data in enumerate(self.sent, start=1):
            ack = self.acks.get(number)
            if ack is None:
                assert (expected + data).startswith(self.kernel.taken)
                return
            assert ack.failure is not None or ack.accepted_bytes == len(data)
            expected += data[: ack.accepted_bytes]
        assert self.kernel.taken == expected


TestAnyKernel = AnyKernel.TestCase
TestAnyKernel.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_what_the_policy_refuses_is_settled_in_its_place_and_not_typed() -> None:
    kernel = Kernel(room=1)
    queue = InputQueue(InputAnswers("s"), kernel)
    assert queue.submit(_input(1, b"ab"), 0.0) == []
    assert (
        queue.submit(
            _input(2, b"id\n", refused=Failure(code="COMMAND_NOT_ALLOWED", message="no")), 0.0
        )
        == []
    )
    kernel.room = 100
    assert _told(queue.advance(1.0)) == [(1, 2, None), (2, 0, "COMMAND_NOT_ALLOWED")]
    assert _told(queue.submit(_input(3, b"c"), 1.0)) == [(3, 1, None)]
    assert kernel.taken == b"abc"


def test_behind_an_input_that_was_typed_in_part_no_line_counts_as_checked() -> None:
    kernel = Kernel(room=2)
    queue = InputQueue(InputAnswers("s"), kernel)
    queue.submit(_input(1, b"echo '\n", is_line_checked=True), 0.0)
    assert _told(queue.expire(INPUT_BLOCKED_SECONDS)) == [(1, 2, "INPUT_BLOCKED")]
    kernel.room = 100
    assert _told(queue.submit(_input(2, b"x; id'\n", is_line_checked=True), 20.0)) == [
        (2, 0, "COMMAND_NOT_ALLOWED")
    ]
    assert _told(queue.submit(_input(3, keys=["ctrl-c"], is_line_checked=True), 20.0))[0][2] is None
    assert _told(queue.submit(_input(4, b"free"), 20.0)) == [(4, 4, None)]
