"""The figures of a report count what they say."""

from chaos.judge.record import Call, Record, Span, Violation
from chaos.report import (
    recoveries,
    turns,
    undisturbed_starts,
    untouched_stalls,
    violations_by_rule,
)


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


def test_recovery_is_measured_where_no_other_fault_goes_on() -> None:
    record = Record(
        calls=[_call("one", at, at + 0.5) for at in (12, 41, 72, 103)],
        spans=[
            Span(0, "link_cut", 10, 10),
            Span(1, "link_stall", 30, 40),
            Span(2, "server_kill", 35, 36, ready=[37]),
            Span(3, "link_cut", 70, 70),
            Span(4, "sqlite_lock", 71, 71.5),
            Span(5, "daemon_kill", 99, 100, ready=[102]),
        ],
    )
    assert recoveries(record) == [2.5, 1.5, 1.0, 1.5]


def test_a_start_counts_that_nothing_else_disturbed() -> None:
    spans = [
        Span(0, "server_kill", 10, 11, ready=[13], starts=[2.0]),
        Span(1, "daemon_kill", 20, 21, ready=[25], starts=[4.0]),
        Span(2, "link_stall", 22, 23),
        Span(3, "everything_kill", 40, 41, ready=[44, 47], starts=[3.0, 6.0]),
        Span(4, "server_slow_start", 50, 51, ready=[56], starts=[5.0]),
    ]
    assert undisturbed_starts(Record(spans=spans)) == [2.0]


def test_a_turn_is_an_acknowledged_line_counted_once() -> None:
    def typed(request_id: str, outcome: str) -> Call:
        arguments: dict[str, object] = {"input_text": "0 say 1\n", "request_id": request_id}
        return Call("one", "send_command_input", arguments, 0, 1, 2, outcome, {})

    calls = [typed("a", "unknown"), typed("a", "ok"), typed("a", "ok"), typed("b", "refused")]
    assert turns(Record(calls=calls)) == 1


def test_violations_are_told_by_rule() -> None:
    found = [Violation("b", "one", ""), Violation("a", "one", ""), Violation("b", "two", "")]
    assert violations_by_rule(found) == "1 a, 2 b"
    assert violations_by_rule([]) == "none"
