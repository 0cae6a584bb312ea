"""Facts about sessions that the steps of a run tell. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from agent.llm.conversation import Call
from agent.models import AgentStep
from projects.policy.call_risk import STARTERS, TYPERS, Standing
from projects.sessions.approvals.asking import TYPED

HANDLES: Final = ("session_id", "sessionId", "token")
# A shell that asks for the rest of a command: the next line is not a command of its own.
_GOES_ON: Final = re.compile(r"(?:^|[\r\n])[a-z ]*> ?$")


def standing_of(call: Call, steps: Sequence[AgentStep], approved: set[tuple[int, int]]) -> Standing:
    """The session of a call that is about to be made, as far as the run knows it.

    ``approved`` are (step, index) of calls that a person approved.
    """
    session = handle_of(call.arguments or {})
    starts = {
        handle_of(result["body"]): place
        for place, made, result in _made(steps)
        if made["name"] in STARTERS and not result["is_error"]
    }
    if not session or session not in starts:
        return Standing(prompt_kind=_reached_kind(session, steps))
    return Standing(
        prompt_kind=_reached_kind(session, steps),
        is_own=True,
        is_vouched=starts[session] in approved,
    )


def is_hidden(call: Call, steps: Sequence[AgentStep]) -> bool:
    """Returns True if the call answers a prompt for a secret: nobody may read what it types."""
    prompt = _last_prompt(handle_of(call.arguments or {}), steps)
    return prompt.get("kind") == "secret" and types(call)


def types(call: Call) -> bool:
    """Returns True if the call types text or keys of its own into a session that it names."""
    given = call.arguments or {}
    return bool(handle_of(given)) and any(given.get(name) for name in TYPED)


def _last_prompt(session: str, steps: Sequence[AgentStep]) -> Mapping[str, Any]:
    """The prompt of the session in its newest result; empty if it waited for nothing."""
    told = (result["body"] for step in reversed(steps) for result in reversed(step.results))
    return next(
        (body.get("prompt") or {} for body in told if session and handle_of(body) == session),
        {},
    )


def _reached_kind(session: str, steps: Sequence[AgentStep]) -> str:
    """The kind of prompt that the session waits at, with an empty line.

    Empty if the run does not know all of that.
    """
    about = [
        (made, result)
        for _place, made, result in reversed(list(_made(steps)))
        if session and session in {handle_of(made["arguments"] or {}), handle_of(result["body"])}
    ]
    if not about or about[0][1]["is_error"]:
        return ""
    typed = next(
        (
            (made["arguments"] or {}, result)
            for made, result in about
            if made["name"] in TYPERS and _types(made["arguments"])
        ),
        None,
    )
    if typed is not None:
        arguments, result = typed
        is_line = bool(arguments.get("secret")) or str(arguments.get("input_text") or "").endswith(
            "\n"
        )
        if result["is_error"] or arguments.get("keys") or not is_line:
            return ""
    prompt = about[0][1]["body"].get("prompt") or {}
    return "" if _GOES_ON.search(str(prompt.get("text") or "")) else str(prompt.get("kind") or "")


def _types(arguments: Mapping[str, Any]) -> bool:
    return any(arguments.get(name) for name in (*TYPED, "secret"))


def _made(
    steps: Sequence[AgentStep],
) -> Iterator[tuple[tuple[int, int], Mapping[str, Any], Mapping[str, Any]]]:
    """Every call that has a result, in order: (step, index), the call, the result."""
    for step in steps:
        for index, (made, result) in enumerate(zip(step.calls, step.results, strict=False)):
            yield (step.number, index), made, result


def handle_of(body: Mapping[str, Any]) -> str:
    """The session that arguments or a result name; empty if they name none."""
    return next((str(body[name]) for name in HANDLES if body.get(name)), "")
