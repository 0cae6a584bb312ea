"""Rules about actions: starts and inputs, at most once, and once if acknowledged."""

from collections.abc import Iterator
from math import inf
from typing import Final

from chaos.judge.record import NEVER_STARTED, NOT_FOUND, Call, Record, Violation, actions
from chaos.wire import NOT_KNOWN, SUSPENDED

STARTS: Final = {"execute_command", "start_interactive_command", "start_command", "run_command"}
_INPUTS: Final = {
    "console_input": "input_text",
    "send_command_input": "input_text",
    "write_input": "input",
}
_REFUSED_LATER: Final = "The last input was refused ("
# Refusals that leave open what was done. All others say that nothing was.
_IN_DOUBT: Final = {
    "CONTROLLER_ACTION_FAILED",
    "INPUT_BLOCKED",
    "INPUT_UNCONFIRMED",
    "SERVER_STOPPING",
    "START_LOST",
    "START_UNCONFIRMED",
    "STORAGE_UNAVAILABLE",
}


def check_starts(record: Record) -> Iterator[Violation]:
    """A program is started at most once, and never if its start was refused for good."""
    for name, calls in record.by_session.items():
        started = [each for each in actions(calls) if each[0].tool in STARTS]
        count = len(record.truth(name).starts)
        if count > len(started):
            yield Violation("start at most once", name, f"{count} starts, {len(started)} asked for")
        refused = [each for each in started if _is_surely_not(record, each)]
        if refused and count > len(started) - len(refused):
            yield Violation("refused means not done", name, f"started after {refused[0][-1].code}")


def check_results(record: Record) -> Iterator[Violation]:
    """The repeats of a start are about one session, or try again what was told to have begun none.

    A start that is told as EXPIRED or START_FAILED has begun no program, and is tried again by its
    repeats: each of them that follows is about another session.
    """
    for name, calls in record.by_session.items():
        failed = {call.session_id: call.answered for call in reversed(calls) if _failed(call)}
        for action in actions(calls):
            answered = [call for call in action if call.outcome == "ok"]
            told = {call.session_id for call in answered}
            is_repeated = any(call.invoked > failed.get(call.session_id, inf) for call in answered)
            if action[0].tool in STARTS and (is_repeated or len(told - failed.keys()) > 1):
                yield Violation("one result", name, f"a start is answered with {sorted(told)}")


def _failed(call: Call) -> bool:
    return call.outcome == "ok" and call.body.get("lifecycle") in NEVER_STARTED


def _is_surely_not(record: Record, action: list[Call]) -> bool:
    """True if the last answer to an action says that it was not done."""
    last = action[-1]
    if last.code == NOT_KNOWN:
        # The caller knows whether it had made the call before.
        return all(call.code in {NOT_KNOWN, SUSPENDED} for call in action)
    if last.code in NOT_FOUND and last.session in record.forgotten:
        return False
    return last.outcome == "refused" and last.code not in _IN_DOUBT


def check_inputs(record: Record) -> Iterator[Violation]:
    """Inputs are read in order, each at most once; an acknowledged one is read."""
    for name, calls in record.by_session.items():
        typed = [each for each in actions(calls) if typed_by(each[0])]
        if typed:
            yield from _check_typed(record, name, typed)


def typed_by(call: Call) -> str:
    """The line that a call types, without its end; empty if it types none."""
    return str(call.arguments.get(_INPUTS.get(call.tool, ""), "")).rstrip("\n")


def _check_typed(record: Record, name: str, typed: list[list[Call]]) -> Iterator[Violation]:
    read = [text for _at, text in record.truth(name).reads]
    tries: dict[str, list[list[Call]]] = {}
    for action in typed:
        tries.setdefault(typed_by(action[0]), []).append(action)
    wanted = list(tries)
    for text in sorted(set(read)):
        if read.count(text) > 1:
            yield Violation("input at most once", name, f"{text!r} was read {read.count(text)} x")
        if text not in wanted:
            yield Violation("input as typed", name, f"{text!r} was read, and nobody typed it")
    known = [wanted.index(text) for text in read if text in wanted]
    if known != sorted(known):
        yield Violation("input in order", name, f"read in the order {read}")
    for text, found in tries.items():
        yield from _check_tries(record, name, text, found)


def _check_tries(
    record: Record, name: str, text: str, tries: list[list[Call]]
) -> Iterator[Violation]:
    """Judge one line by all the actions that typed it: after some refusals it is typed again."""
    read = record.truth(name).read_at(text)
    refused = [action for action in tries if _is_surely_not(record, action)]
    other = [action for action in tries if action not in refused]
    if refused and read is not None and not any(each[0].invoked <= read for each in other):
        why = f"{text!r} was read after {refused[0][-1].code}"
        yield Violation("refused means not done", name, why)
    last = [action[-1] for action in other if not _may_be_forgotten(record, action[-1])]
    is_acknowledged = any(map(_is_acknowledged, last))
    is_taken_back = text in _refused_later(record.by_session[name])
    if read is not None and is_taken_back:
        yield Violation("refused means not done", name, f"{text!r} was read, and told as refused")
    if read is None and is_acknowledged and not (is_taken_back or record.is_cut_off(name)):
        yield Violation("acknowledged input", name, f"{text!r} was never read")


def _refused_later(calls: list[Call]) -> set[str]:
    """The lines of which a later answer says that the host refused them after all.

    The answer to a line that the host has not taken yet says only that the program runs.
    """
    found: set[str] = set()
    last = ""
    for call in calls:
        last = typed_by(call) or last
        if call.outcome == "ok" and _REFUSED_LATER in str(call.body.get("hint")):
            found.add(last)
    return found


def _may_be_forgotten(record: Record, call: Call) -> bool:
    """True if a restore may have taken an input that was accepted and not yet with its host."""
    is_on_its_way = call.body.get("state") == "running"
    return is_on_its_way and any(
        call.answered >= span.begin and call.invoked <= span.over for span in record.restores
    )


def _is_acknowledged(call: Call) -> bool:
    # A write that says ``success: false`` may come later, or never.
    return call.outcome == "ok" and call.body.get("success", True) is True
