"""The order between streams is exact up to a bound and never costs a stream its own order."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controller_client.protocol.messages import Stream
from controller_client.protocol.resume.production_order import ProductionOrder
from tests.support.running.property_settings import STEADY


def _runs(order: ProductionOrder) -> list[tuple[Stream, int]]:
    runs = []
    while order.first is not None:
        run = order.pop_first()
        runs.append((run.stream, run.end))
    return runs


def test_neighbouring_writes_of_a_stream_are_one_run() -> None:
    order = ProductionOrder()
    written: list[tuple[Stream, int]] = [("stdout", 3), ("stdout", 5), ("stderr", 2), ("stdout", 9)]
    for stream, end in written:
        order.add(stream, end)
    assert _runs(order) == [("stdout", 5), ("stderr", 2), ("stdout", 9)]


def test_runs_below_the_floors_are_dropped_from_the_front_only() -> None:
    order = ProductionOrder()
    written: list[tuple[Stream, int]] = [("stdout", 3), ("stderr", 2), ("stdout", 6), ("stderr", 4)]
    for stream, end in written:
        order.add(stream, end)
    order.drop_before({"stdout": 3, "stderr": 4})
    assert _runs(order) == [("stdout", 6), ("stderr", 4)]


def test_earlier_runs_go_in_front_and_leave_their_queue() -> None:
    earlier, later = ProductionOrder(), ProductionOrder()
    earlier.add("stdout", 1)
    earlier.add("stderr", 1)
    later.add("stdout", 2)
    later.prepend(earlier)
    assert (len(earlier), _runs(later)) == (0, [("stdout", 1), ("stderr", 1), ("stdout", 2)])


@given(st.lists(st.sampled_from(["stdout", "stderr"]), max_size=60), st.integers(2, 10))
@settings(STEADY)
def test_the_queue_is_bounded_and_each_stream_ends_where_it_ended(
    writes: list[Stream], bound: int
) -> None:
    order = ProductionOrder(max_runs=bound)
    ends: dict[Stream, int] = {"stdout": 0, "stderr": 0}
    for stream in writes:
        ends[stream] += 1
        order.add(stream, ends[stream])
        assert len(order) <= bound
    runs = _runs(order)
    for stream, end in ends.items():
        of_stream = [run_end for name, run_end in runs if name == stream]
        assert of_stream == sorted(set(of_stream))
        assert of_stream[-1:] == ([end] if end else [])
