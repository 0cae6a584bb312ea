"""Many sessions share one connection: control first, then output in turns, within the window."""

from collections import Counter, deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    MAX_OUTPUT_FRAMES_IN_FLIGHT,
    SESSION_WINDOW_BYTES,
)
from controller_client.protocol.messages import (
    Gap,
    InteractiveCmdDone,
    InteractiveOutput,
    Message,
    Ping,
    TerminalReport,
)
from controller_client.protocol.resume import (
    ConnectionSender,
    OutputLaneMessage,
    OutputSender,
    ReceiveWindow,
    StreamReceiver,
)
from tests.support.running.property_settings import STEADY


def _output(session_id: str, offset: int, size: int) -> InteractiveOutput:
    return InteractiveOutput(
        session_id=session_id, stream="stdout", offset=offset, seq=1, data=b"x" * size
    )


def _push(sender: ConnectionSender, message: InteractiveOutput | Gap | InteractiveCmdDone) -> None:
    sender.push_output(message.session_id, message)


def _sent(sender: ConnectionSender) -> list[Message]:
    return list(iter(sender.next, None))


def test_control_messages_never_wait_behind_output() -> None:
    sender, first, second = ConnectionSender(100), Ping(), Ping()
    output = _output("a", 0, 5)
    _push(sender, output)
    sender.push_control(first)
    sender.push_control(second)
    assert _sent(sender) == [first, second, output]


def test_sessions_take_turns_and_each_keeps_its_order() -> None:
    sender = ConnectionSender(100)
    a = [_output("a", n, 1) for n in range(3)]
    b: list[OutputLaneMessage] = [
        _output("b", 0, 1),
        Gap(session_id="b", stream="stdout", from_offset=1, to_offset=2, reason="lost"),
    ]
    for message in a:
        _push(sender, message)
    for each in b:
        sender.push_output("b", each)
    assert _sent(sender) == [a[0], b[0], a[1], b[1], a[2]]


def test_output_stops_at_the_window_and_control_does_not() -> None:
    sender, ping = ConnectionSender(10), Ping()
    frames = [_output("a", 0, 6), _output("a", 6, 6)]
    for message in frames:
        _push(sender, message)
    assert _sent(sender) == frames[:1]
    assert (sender.queued_bytes, sender.in_flight_bytes) == (6, 6)
    sender.push_control(ping)
    assert _sent(sender) == [ping]
    sender.acknowledge("a", "stdout", 2)
    assert _sent(sender) == frames[1:]
    assert (sender.queued_bytes, sender.in_flight_bytes) == (0, 10)


def test_a_frame_larger_than_the_window_goes_alone() -> None:
    sender = ConnectionSender(4)
    large, next_one = _output("a", 0, 9), _output("a", 9, 1)
    _push(sender, large)
    _push(sender, next_one)
    assert _sent(sender) == [large]
    sender.acknowledge("a", "stdout", 9)
    assert _sent(sender) == [next_one]


def test_small_frames_of_a_neighbour_do_not_starve_a_large_one() -> None:
    sender = ConnectionSender(10)
    large = _output("large", 0, 8)
    _push(sender, _output("small", 0, 5))
    assert len(_sent(sender)) == 1
    _push(sender, large)
    for n in range(5):
        _push(sender, _output("small", 5 + n, 1))
    assert _sent(sender) == []
    sender.acknowledge("small", "stdout", 5)
    assert sender.next() == large


def test_an_empty_frame_overtakes_other_blocked_sessions_but_not_its_own() -> None:
    sender = ConnectionSender(10)
    done = InteractiveCmdDone(session_id="b", end_reason="exited", exit_code=0)
    blocked, own_done = (
        _output("a", 10, 5),
        InteractiveCmdDone(session_id="a", end_reason="exited", exit_code=0),
    )
    for message in (_output("a", 0, 10), blocked, own_done, done):
        _push(sender, message)
    assert _sent(sender)[1:] == [done]
    sender.acknowledge("a", "stdout", 10)
    assert _sent(sender) == [blocked, own_done]


def test_stale_and_unknown_acknowledgements_are_ignored() -> None:
    sender = ConnectionSender(100)
    _push(sender, _output("a", 10, 5))
    _sent(sender)
    sender.acknowledge("a", "stderr", 99)
    sender.acknowledge("b", "stdout", 99)
    sender.acknowledge("a", "stdout", 10)
    assert sender.in_flight_bytes == 5
    for _ in range(2):
        sender.acknowledge("a", "stdout", 15)
    assert sender.in_flight_bytes == 0


def test_streams_of_a_session_are_acknowledged_each_by_itself() -> None:
    sender = ConnectionSender(100)
    _push(sender, _output("a", 0, 5))
    sender.push_output(
        "a", InteractiveOutput(session_id="a", stream="stderr", offset=0, seq=2, data=b"yy")
    )
    _sent(sender)
    sender.acknowledge("a", "stdout", 5)
    assert sender.in_flight_bytes == 2


def test_a_dropped_session_leaves_nothing_behind() -> None:
    sender = ConnectionSender(10)
    other = _output("b", 0, 10)
    for message in (_output("a", 0, 10), _output("a", 10, 3)):
        _push(sender, message)
    _sent(sender)
    _push(sender, other)
    sender.drop_session("a")
    assert (sender.in_flight_bytes, sender.queued_bytes) == (0, 10)
    assert _sent(sender) == [other]
    sender.acknowledge("a", "stdout", 10)
    assert sender.in_flight_bytes == 10


def test_bytes_of_a_dead_holder_stay_in_the_window() -> None:
    sender = ConnectionSender(10)
    for message in (_output("a", 0, 6), _output("a", 6, 3), _output("a", 9, 3)):
        _push(sender, message)
    assert len(_sent(sender)) == 2
    sender.discard_queued("a")
    assert (sender.in_flight_bytes, sender.queued_bytes) == (9, 0)
    neighbour = _output("b", 0, 5)
    _push(sender, neighbour)
    assert _sent(sender) == []
    sender.acknowledge("a", "stdout", 6)
    assert _sent(sender) == [neighbour]


def test_sent_bytes_are_not_sent_again_but_a_verdict_is() -> None:
    sender, verdict = ConnectionSender(100), TerminalReport(state="running", offset=6, input_seq=0)
    _push(sender, _output("a", 0, 6))
    _sent(sender)
    sender.discard_queued("a")
    again = InteractiveOutput(
        session_id="a", stream="stdout", offset=2, seq=9, data=b"xxxx", terminal=verdict
    )
    for message in (again, _output("a", 4, 5)):
        _push(sender, message)
    told, rest = _sent(sender)
    assert told == InteractiveOutput(
        id=again.id, session_id="a", stream="stdout", offset=6, seq=9, terminal=verdict
    )
    assert isinstance(rest, InteractiveOutput)
    assert (rest.offset, rest.data) == (6, b"xxx")
    assert sender.in_flight_bytes == 9


def test_short_frames_are_bounded_by_their_number() -> None:
    sender = ConnectionSender(CONNECTION_WINDOW_BYTES)
    for n in range(MAX_OUTPUT_FRAMES_IN_FLIGHT + 5):
        _push(sender, _output("a", n, 1))
    assert len(_sent(sender)) == MAX_OUTPUT_FRAMES_IN_FLIGHT
    sender.acknowledge("a", "stdout", 3)
    assert len(_sent(sender)) == 3


class BothEndsOfTheWindow(RuleBasedStateMachine):
    """Holders die or are attached to again, while the server commits when it can.

    The server never sees more bytes in flight than its window allows.
    """

    NAMES = "abcd"

    def __init__(self) -> None:
        super().__init__()
        self.sender = ConnectionSender(CONNECTION_WINDOW_BYTES)
        self.window = ReceiveWindow()
        self.holders = {
            name: OutputSender(session_id=name, streams=["stdout"]) for name in self.NAMES
        }
        self.known = {name: StreamReceiver(0) for name in self.NAMES}
        self.waiting: deque[InteractiveOutput] = deque()
        for holder in self.holders.values():
            holder.attach({}, SESSION_WINDOW_BYTES)

    @rule(name=st.sampled_from(NAMES), size=st.integers(1, 200_000))
    def print(self, name: str, size: int) -> None:
        self.holders[name].produce("stdout", b"x" * size)
        self._pass_on(name)

    @rule(name=st.sampled_from(NAMES))
    def speak_anew(self, name: str) -> None:
        self.sender.discard_queued(name)
        self.holders[name].attach({"stdout": self.known[name].expected}, SESSION_WINDOW_BYTES)
        self._pass_on(name)

    @rule(name=st.sampled_from(NAMES))
    def die(self, name: str) -> None:
        self.sender.discard_queued(name)
        self.holders[name].detach()

    @rule(count=st.integers(1, 20))
    def commit(self, count: int) -> None:
        for message in [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]:
            self.known[message.session_id].accept(message.offset, message.data)
            self.window.committed(message.session_id, len(message.data))
            self.sender.acknowledge(
                message.session_id, "stdout", self.known[message.session_id].expected
            )
            holder = self.holders[message.session_id]
            if holder.is_attached:
                holder.acknowledge("stdout", self.known[message.session_id].expected)
                self._pass_on(message.session_id)
        self._send()

    def _pass_on(self, name: str) -> None:
        while (frame := self.holders[name].next_frame()) is not None:
            self.sender.push_output(name, frame)
        self._send()

    def _send(self) -> None:
        for message in _sent(self.sender):
            assert isinstance(message, InteractiveOutput)
            self.window.received(message.session_id, len(message.data))
            self.waiting.append(message)

    @invariant()
    def both_count_the_same(self) -> None:
        assert self.sender.in_flight_bytes == self.window.in_flight_bytes


TestBothEndsOfTheWindow = BothEndsOfTheWindow.TestCase
TestBothEndsOfTheWindow.settings = settings(STEADY, max_examples=40, stateful_step_count=30)


class SenderAgainstItsModel(RuleBasedStateMachine):
    """Order within a session, window and counts hold, whatever is pushed, sent and acknowledged."""

    WINDOW = 20

    def __init__(self) -> None:
        super().__init__()
        self.sender = ConnectionSender(self.WINDOW)
        self.offsets: Counter[str] = Counter()
        self.queued: dict[str, deque[InteractiveOutput]] = {name: deque() for name in "abc"}
        self.sent: Counter[str] = Counter()
        self.acknowledged: Counter[str] = Counter()

    @rule(name=st.sampled_from("abc"), size=st.integers(0, 15))
    def push(self, name: str, size: int) -> None:
        message = _output(name, self.offsets[name], size)
        self.offsets[name] += size
        self.queued[name].append(message)
        _push(self.sender, message)

    @rule()
    def send_all(self) -> None:
        for message in _sent(self.sender):
            assert isinstance(message, InteractiveOutput)
            assert message is self.queued[message.session_id].popleft()
            self.sent[message.session_id] += len(message.data)

    @rule(name=st.sampled_from("abc"), part=st.floats(0, 1))
    def acknowledge(self, name: str, part: float) -> None:
        offset = int(part * self.sent[name])
        self.sender.acknowledge(name, "stdout", offset)
        self.acknowledged[name] = max(self.acknowledged[name], offset)

    @invariant()
    def counts_are_true_and_the_window_holds(self) -> None:
        assert (
            self.sender.in_flight_bytes
            == self.sent.total() - self.acknowledged.total()
            <= self.WINDOW
        )
        assert self.sender.queued_bytes == sum(
            len(each.data) for lane in self.queued.values() for each in lane
        )

    def teardown(self) -> None:
        for _ in range(1 + sum(map(len, self.queued.values()))):
            self.send_all()
            for name in "abc":
                self.acknowledge(name, 1.0)
        assert not any(self.queued.values())


TestSenderAgainstItsModel = SenderAgainstItsModel.TestCase
TestSenderAgainstItsModel.settings = settings(STEADY, max_examples=50, stateful_step_count=40)
