"""Commands that are handed over in any order leave in the order of their numbers."""

from hypothesis import given
from hypothesis import strategies as st

from controller_client.protocol.messages import Resize
from projects.link.command_order import MAX_HELD, CommandOrder


def _command(seq: int) -> Resize:
    return Resize(seq=seq, session_id="a", rows=1, cols=1)


def _ready(order: CommandOrder) -> list[int]:
    ready = []
    while (command := order.next()) is not None:
        ready.append(command.seq)
    return ready


@given(st.permutations(range(1, 13)))
def test_any_order_of_arrival_is_one_order_of_departure(arrivals: list[int]) -> None:
    order = CommandOrder()
    sent = []
    for seq in arrivals:
        order.hand_over(_command(seq))
        sent += _ready(order)
    assert sent == list(range(1, 13))
    assert not order.has_gap


def test_a_command_that_the_outbox_gave_is_not_sent_again() -> None:
    order = CommandOrder()
    order.hand_over(_command(3))
    assert (_ready(order), order.has_gap) == ([], True)
    order.took([1, 2, 3], up_to=4)
    order.hand_over(_command(4))
    assert (_ready(order), order.has_gap, order.sent_up_to) == ([], False, 4)
    order.hand_over(_command(5))
    assert _ready(order) == [5]


def test_no_more_is_held_than_allowed() -> None:
    order = CommandOrder()
    for seq in range(2, MAX_HELD + 3):
        order.hand_over(_command(seq))
    assert order.has_dropped
    order.took([1], up_to=1)
    assert not order.has_dropped
    assert _ready(order) == list(range(2, MAX_HELD + 2))
