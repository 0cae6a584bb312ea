"""A run as lines for people, each with a kind. Terminal and console show the same lines.

No invisible character comes through. Pure.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agent.models import AgentRun, AgentStep
from projects.admin.parts.display import shortened, visible
from projects.models import Approval
from projects.policy.call_risk import MONITORS
from projects.sessions.approvals.asking import arguments_of
from projects.sessions.approvals.disclosure import (
    NO_FILE,
    NOT_SHOWN,
    arguments_shown,
    disclosure_of,
)

Kind = Literal["note", "text", "call", "output", "state", "error", "approval", "end"]
MOST_OUTPUT_LINES: Final = 60
_PRINTED: Final = ("output", "stdout", "stderr")
_QUIET_ARGUMENTS: Final = frozenset(
    {"session_id", "sessionId", "wait_seconds", "request_id", "requestId", "max_output_bytes"}
)


@dataclass(frozen=True, slots=True)
class Line:
    """One line, or one block of text."""

    kind: Kind
    text: str


def notes_of(said: Sequence[str]) -> Iterator[Line]:
    """The messages to the model before it answers."""
    for text in said:
        yield Line("note", visible(text, keep="\n"))


def call_line(call: Mapping[str, Any]) -> Line:
    """The call in one line: its whole command or input first, and without its handles."""
    arguments = {
        name: value
        for name, value in (call["arguments"] or {}).items()
        if name not in _QUIET_ARGUMENTS
    }
    lead = str(arguments.pop("command", "")) or " ".join(_typed(arguments))
    rest = json.dumps(arguments, ensure_ascii=False) if arguments else ""
    parts = (visible(part) for part in (call["name"], lead, rest) if part)
    return Line("call", " ".join(parts))


def _typed(arguments: dict[str, Any]) -> Iterator[str]:
    if text := arguments.pop("input_text", ""):
        yield json.dumps(text, ensure_ascii=False)
    if keys := arguments.pop("keys", ()):
        yield "+".join(map(str, keys)) if isinstance(keys, list) else str(keys)
    if secret := arguments.pop("secret", ""):
        yield f"(secret {secret})"


def result_lines(result: Mapping[str, Any]) -> Iterator[Line]:
    """The result of a call: output, and the state of the program."""
    body = result["body"]
    if result["is_error"]:
        yield Line("error", visible(f"{body.get('code', '')}: {body.get('error', '')}"))
        return
    for name in _PRINTED:
        lines = visible(str(body.get(name) or ""), keep="\n\t").rstrip("\n").split("\n")
        if lines != [""]:
            left_out = len(lines) - MOST_OUTPUT_LINES
            shown = (
                lines
                if left_out <= 0
                else [*lines[:10], f"… {left_out} lines …", *lines[-(MOST_OUTPUT_LINES - 10) :]]
            )
            yield from (Line("output", line) for line in shown)
    if standing := _standing(body):
        yield Line("state", visible(standing))


def _standing(body: Mapping[str, Any]) -> str:
    if prompt := body.get("prompt"):
        return f"waits for input: {prompt.get('kind')} ({prompt.get('evidence')})"
    for name in ("exit_code", "return_code"):
        if body.get(name) is not None:
            return f"ended, exit code {body[name]}"
    if body.get("signal") or body.get("end_reason"):
        return f"ended: {body.get('signal') or body.get('end_reason')}"
    return str(body.get("state", ""))


def approval_line(approval: Approval) -> Line:
    """The question to a person with all that it discloses, each on a line; or the answer."""
    if approval.answer == Approval.Answer.PENDING:
        return Line("approval", "\n".join(question_lines(approval)))
    said = f": {visible(approval.reason)}" if approval.reason else ""
    return Line(
        "approval", f"#{approval.pk} {approval.answer} by {shortened(approval.answered_by)}{said}"
    )


def question_lines(approval: Approval) -> Iterator[str]:
    """The call and its target, then the files that it may run, then the notices."""
    given = arguments_of(approval)
    call = call_line({"name": approval.tool, "arguments": given or {}}).text
    unseen = f" {NOT_SHOWN}" if given is None else ""
    why = f" ({visible(approval.risk_reason)})" if approval.risk_reason else ""
    place = f" [{'; '.join(parts)}]" if (parts := list(_place_of(approval))) else ""
    yield f"asks for approval #{approval.pk}: {approval.risk}: {call}{unseen}{why}{place}"
    yield from _told_lines(approval)


def exact_lines(approval: Approval) -> Iterator[str]:
    """The question in full, as its page shows it: each argument has a line of its own."""
    asker = f"asked by {visible(approval.asked_by)} in {visible(approval.project.name)}"
    yield f"approval #{approval.pk}: {approval.tool}, {asker}"
    yield from (f"  {visible(name)}: {visible(text)}" for name, text in arguments_shown(approval))
    why = f": {visible(approval.risk_reason)}" if approval.risk_reason else ""
    yield f"  risk: {approval.risk}{why}"
    yield from (f"  {part}" for part in _place_of(approval))
    # On no page of a run: not everybody who may see runs may read screens.
    if approval.prompt:
        yield f"  at the prompt {shortened(approval.prompt)!r}"
    yield from _told_lines(approval)


def _told_lines(approval: Approval) -> Iterator[str]:
    told = disclosure_of(approval)
    yield from (f"  may run {visible(file.path)} ({file.content})" for file in told.files)
    if told.names_no_file:
        yield f"  {NO_FILE}"
    yield from (f"  notice: {notice}" for notice in told.notices)


def _place_of(approval: Approval) -> Iterator[str]:
    """The host, and the session or the log, that the call goes to."""
    if approval.host:
        yield f"on {visible(approval.host)}"
    if approval.session_id is not None:
        yield f"in session {approval.session_id} of {shortened(approval.session_command)!r}"
    elif approval.tool in MONITORS and approval.session_command:
        yield f"of the log {visible(approval.session_command)}"


def end_line(run: AgentRun) -> Line:
    """The end of the run, and what it cost."""
    cost = f", {run.cost_cents / 100:.2f} USD" if run.cost_cents else ""
    took = f"{run.input_tokens + run.output_tokens} tokens{cost}"
    return Line(
        "end",
        f"{run.state} ({run.stop_reason}), {took}\n{visible(run.report, keep=chr(10))}".rstrip(),
    )


def used_line(run: AgentRun, *, steps: int) -> str:
    """The part of the budget that the run has used so far."""
    return (
        f"{steps} step{'' if steps == 1 else 's'}, {run.input_tokens + run.output_tokens} tokens, "
        f"{run.cost_cents / 100:.2f} USD, {run.worked_seconds:.0f} s"
    )


def listed_line(run: AgentRun, *, steps: int) -> str:
    """The run as one line of a list."""
    how = f"{run.state} ({run.stop_reason})" if run.stop_reason else run.state
    about = f"{visible(run.project.name)}  {shortened(run.model)}  {shortened(run.task)}"
    return (
        f"{run.id}  {run.created_at:%Y-%m-%d %H:%M}  {how:<26}  {used_line(run, steps=steps)} "
        f" {about}"
    )


def sessions_of(steps: Sequence[AgentStep]) -> list[str]:
    """The interactive sessions that results of the run are about, in order."""
    found = [
        str(result["body"]["session_id"])
        for step in steps
        for result in step.results
        if result["body"].get("session_id")
    ]
    return list(dict.fromkeys(found))


def whole_run(
    run: AgentRun, steps: Sequence[AgentStep], approvals: Sequence[Approval]
) -> Iterator[Line]:
    """The lines of the whole run so far."""
    for step in steps:
        yield from notes_of(step.said_before)
        if step.text:
            yield Line("text", visible(step.text, keep="\n"))
        for index, call in enumerate(step.calls):
            yield call_line(call)
            yield from (
                approval_line(one) for one in approvals if one.place == (step.number, index)
            )
            if index < len(step.results):
                yield from result_lines(step.results[index])
    if run.notice:
        yield Line("note", visible(run.notice))
    if run.draft:
        yield Line("text", visible(run.draft, keep="\n") + " …")
    if run.ended_at is not None:
        yield end_line(run)
