"""The times of a stream: each byte has the time of the newest mark before it, within bounds."""

from controller_client.protocol.messages import HostTime
from controller_client.protocol.resume.production_times import STEP_SECONDS, ProductionTimes


def _at(clock: float) -> HostTime:
    return HostTime(wall=1_700_000_000 + clock, clock=clock)


def test_bytes_close_together_share_the_time_of_the_first() -> None:
    times = ProductionTimes()
    times.add(0, _at(1.0), begins_frame=True)
    times.add(10, _at(1.0 + STEP_SECONDS / 2), begins_frame=False)
    times.add(20, _at(1.0 + STEP_SECONDS), begins_frame=False)
    assert [times.at(offset) for offset in (0, 19, 20, 99)] == [
        _at(1.0),
        _at(1.0),
        _at(1.0 + STEP_SECONDS),
        _at(1.0 + STEP_SECONDS),
    ]


def test_the_first_byte_of_a_frame_has_its_own_time() -> None:
    times = ProductionTimes()
    times.add(0, _at(1.0), begins_frame=True)
    times.add(10, _at(1.001), begins_frame=True)
    assert times.at(10) == _at(1.001)
    assert times.end_of_step(0) is None


def test_a_frame_ends_before_bytes_of_a_later_step() -> None:
    times = ProductionTimes()
    for step in range(5):
        times.add(step * 10, _at(step * STEP_SECONDS * 1.5), begins_frame=False)
    assert [times.end_of_step(offset) for offset in (0, 5, 10, 39, 40)] == [10, 10, 20, 40, None]


def test_bytes_from_before_the_first_mark_have_no_time() -> None:
    times = ProductionTimes()
    times.add(10, _at(1.0), begins_frame=False)
    assert times.at(9) is None
    assert times.end_of_step(9) is None


def test_released_marks_go_and_the_time_of_the_next_byte_stays() -> None:
    times = ProductionTimes()
    for step in range(4):
        times.add(step * 10, _at(float(step)), begins_frame=False)
    times.drop_before(25)
    assert (len(times), times.at(25), times.at(30)) == (2, _at(2.0), _at(3.0))


def test_too_many_marks_get_coarser_and_keep_the_oldest() -> None:
    times = ProductionTimes(max_marks=8)
    for step in range(100):
        times.add(step, _at(float(step)), begins_frame=False)
        assert len(times) <= 8
    assert times.at(0) == _at(0.0)
    found = [times.at(offset) for offset in range(100)]
    assert all(at is not None and at.clock <= offset for offset, at in enumerate(found))
