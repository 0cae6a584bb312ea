"""Rules about ends: what is told is true, and told of programs that have ended."""

from collections.abc import Iterator
from typing import Final

from chaos.judge.record import NEVER_STARTED, NOT_FOUND, Call, Record, Violation
from chaos.wire import NOT_KNOWN, SUSPENDED, Json

# What these end may have been about to start a program. Nobody knows that it did not.
_END_HOSTS: Final = {
    "cloned_daemon",
    "daemon_kill",
    "daemon_term",
    "daemon_versions",
    "everything_kill",
    "fork_server_kill",
}
_RECOVERY_SECONDS: Final = 30.0
_MISTAKES: Final = {
    "FILE_NOT_FOUND",
    "INVALID_ARGUMENT",
    "NOT_FOUND",
    "REQUEST_ID_REUSED",
    "SESSION_NOT_FOUND",
    "UNAUTHENTICATED",
    "UNKNOWN_ARGUMENT",
}


def check_alive(record: Record) -> Iterator[Violation]:
    """No process of a program lives after its end was told."""
    for note in record.notes["told_end"]:
        if note["alive"]:
            text = f"{note['alive']} lived after the end was told"
            yield Violation("ended means ended", str(note["session"]), text)


def check_receipts(record: Record) -> Iterator[Violation]:
    """Exit codes, signals and reasons of ends are true, in receipts after an end was told."""
    told = {str(note["session"]): note["at"] for note in reversed(record.notes["told_end"])}
    for call in record.calls:
        ended = told.get(call.session)
        if call.tool == "get_session" and call.outcome == "ok" and ended is not None:
            assert isinstance(ended, int | float)
            if call.answered < ended:
                continue
            why = _untrue(record, call)
            if why:
                yield Violation("ends are true", call.session, why)


def _untrue(record: Record, call: Call) -> str:
    """Say why a receipt is wrong; empty if it is right."""
    body, truth = call.body, record.truth(call.session)
    lifecycle, reason = body["lifecycle"], body["end_reason"]
    if lifecycle == "EXITED":
        said = f"signal {body['signal']}" if body["signal"] else f"code {body['exit_code']}"
        true = _spelled(truth.end)
        return "" if said in true else f"said {said}, and the program says {truth.end}"
    if lifecycle == "LOST":
        return "" if _may_be_lost(record, call) else "LOST, and nobody killed its holder"
    if lifecycle == "TERMINATED":
        return "" if _was_terminated(record, call) else "TERMINATED, and nobody asked for that"
    if lifecycle == "TIMED_OUT":
        calls = record.by_session[call.session]
        is_so = any("lifetime_seconds" in each.arguments for each in calls)
        return "" if is_so else "TIMED_OUT, and nobody asked for a lifetime"
    if lifecycle in NEVER_STARTED and not truth.starts:
        return ""
    return f"ended as {lifecycle} ({reason}, {body['failure_code']})"


def _may_be_lost(record: Record, receipt: Call) -> bool:
    """True if the holder was killed, or was never told what to start, or its end was forgotten."""
    is_started = bool(record.truth(receipt.session).starts)
    kinds = {span.kind for span in record.spans}
    if receipt.session in record.victims or record.is_end_forgotten(receipt.session):
        return True
    return not is_started and bool(kinds & _END_HOSTS)


def _spelled(end: str | None) -> set[str]:
    """The ways to tell an end: a signal by its name or its number."""
    names = {"signal 9": "signal SIGKILL", "signal 15": "signal SIGTERM"}
    return {str(end), names.get(str(end), "")}


def _was_terminated(record: Record, receipt: Call) -> bool:
    calls = record.by_session[receipt.session]
    return any(call.tool == "stop_command" or call.arguments.get("terminate") for call in calls)


def check_answers(record: Record) -> Iterator[Violation]:
    """Every call is answered in the end, all reads have data, and conversations get on."""
    for note in record.notes["gave_up"]:
        # A restore may take longer than callers have patience, and nobody is served meanwhile.
        if _is_at_restore(record, note):
            continue
        text = f"{note['tool']} was never answered: {note['body']}"
        yield Violation("calls are answered", str(note["session"]), text)
    for note in record.notes["unread"]:
        if note["session"] in record.forgotten and _code(note) in NOT_FOUND:
            continue
        text = f"{note['tool']} could not be read: {note['body']}"
        yield Violation("reads are answered", str(note["session"]), text)
    for note in record.notes["stuck"]:
        yield Violation("conversations get on", str(note["session"]), "no progress for minutes")


def check_refusals(record: Record) -> Iterator[Violation]:
    """Calls are refused for what happens to the product, and never for what the caller sent."""
    told = set()
    for call in record.calls:
        which = (call.session, call.tool, call.code)
        if which not in told and _is_wrong(record, call):
            told.add(which)
            yield Violation("refusals fit", call.session, f"{call.tool}: {call.body}"[:400])


def _is_at_restore(record: Record, note: Json) -> bool:
    at = note["at"]
    assert isinstance(at, float)
    return any(span.begin <= at <= span.over + _RECOVERY_SECONDS for span in record.restores)


def _code(note: Json) -> str:
    body = note["body"]
    assert isinstance(body, dict)
    return str(body.get("code", ""))


def _is_wrong(record: Record, call: Call) -> bool:
    """True if a refusal blames the caller for what a fault did, or no fault at all."""
    if call.code == NOT_KNOWN:
        return not any(span.begin <= call.answered for span in record.restores)
    if call.code == SUSPENDED:
        return not any(
            call.answered >= span.begin and call.invoked <= span.over for span in record.restores
        )
    if call.code in NOT_FOUND and call.session in record.forgotten:
        return False
    return call.code in _MISTAKES or call.code.startswith("HTTP_")


def check_suspended(record: Record) -> Iterator[Violation]:
    """Nobody is served from a restore until it is confirmed."""
    for begin, end in _suspended(record):
        for call in record.calls:
            if call.outcome == "ok" and begin <= call.invoked and call.answered <= end:
                text = f"{call.tool} was served before the restore was confirmed"
                yield Violation("restored means suspended", call.session, text)


def _suspended(record: Record) -> Iterator[tuple[float, float]]:
    """The times from each restore of the database until its confirmation began."""
    begin = 0.0
    for note in record.notes["suspended"]:
        at = note["at"]
        assert isinstance(at, float)
        if note["is_so"]:
            begin = at
        else:
            yield begin, at


def check_leftovers(record: Record) -> Iterator[Violation]:
    """Nothing is left behind, the audit log is whole, and nothing has grown."""
    for note in record.notes["left_behind"]:
        yield Violation("nothing is left", "", f"{note['what']}: {note['found']}")
