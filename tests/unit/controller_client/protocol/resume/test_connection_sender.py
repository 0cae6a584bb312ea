"""One connection between many sessions: control first, turns for the rest, never over the window."""

from collections import Counter, deque

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from controller_client.protocol.messages import Gap, InteractiveCmdDone, InteractiveOutput, Message, Ping
from controller_client.protocol.resume import ConnectionSender, OutputLaneMessage
from tests.support.property_settings import STEADY


def _output(session_id: str, offset: int, size: int) -> InteractiveOutput:
    return InteractiveOutput(session_id=session_id, stream="stdout", offset=offset, seq=1, data=b"x" * size)


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
    b: list[OutputLaneMessage] = [_output("b", 0, 1), Gap(session_id="b", stream="stdout", from_offset=1, to_offset=2, reason="lost")]
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


def test_a_frame_without_bytes_overtakes_a_blocked_neighbour_but_not_its_own_session() -> None:
    sender = ConnectionSender(10)
    done = InteractiveCmdDone(session_id="b", end_reason="exited", exit_code=0)
    blocked, own_done = _output("a", 10, 5), InteractiveCmdDone(session_id="a", end_reason="exited", exit_code=0)
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
    sender.push_output("a", InteractiveOutput(session_id="a", stream="stderr", offset=0, seq=2, data=b"yy"))
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


class SenderAgainstItsModel(RuleBasedStateMachine):
    """Whatever is pushed, sent and acknowledged: order within a session, the window, and the counts."""

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
        assert self.sender.in_flight_bytes == self.sent.total() - self.acknowledged.total() <= self.WINDOW
        assert self.sender.queued_bytes == sum(len(each.data) for lane in self.queued.values() for each in lane)

    def teardown(self) -> None:
        for _ in range(1 + sum(map(len, self.queued.values()))):
            self.send_all()
            for name in "abc":
                self.acknowledge(name, 1.0)
        assert not any(self.queued.values())


TestSenderAgainstItsModel = SenderAgainstItsModel.TestCase
TestSenderAgainstItsModel.settings = settings(STEADY, max_examples=50, stateful_step_count=40)
