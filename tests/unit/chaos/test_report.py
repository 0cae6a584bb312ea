"""The figures of a report count what they say."""

from chaos.judge.record import Call, Record, Span
from chaos.report import untouched_stalls


def _call(session_id: str, invoked: float, answered: float, wait: float = 0.0) -> Call:
    arguments = {"session_id": session_id}
    return Call(session_id, "get_session", arguments, wait, invoked, answered, "ok", {})


def test_only_other_sessions_count_while_one_holder_fails() -> None:
    record = Record(
        calls=[
            _call("victim", 11, 19),
            _call("other", 11, 14, wait=2),
            _call("other", 40, 49),
            _call("later", 29, 35),
            _call("later", 50, 51),
        ],
        spans=[
            Span(0, "holder_stop", 10, 20, touched=["victim"]),
            Span(1, "link_stall", 30, 48),
            Span(2, "holder_stop", 45, 46, touched=["other"]),
        ],
    )
    assert untouched_stalls(record) == [1.0]
