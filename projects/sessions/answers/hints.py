"""Hints: sentences that tell a caller what to do next with a session.

These and the guidance of the tools are the words that steer a model. A sentence that names a tool
which the caller is not shown is left out (``projects.errors.shown_tools``): alternatives are
separated by ``||``.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from controller_client.protocol.sentences import sentences
from projects.errors.shown_tools import said
from projects.errors.uncertain import INPUT_UNCONFIRMED, START_LOST
from projects.models.lifetime_clock import LifetimeClock
from projects.sessions.answers.results import Prompt, TerminalState

_ANSWER: Final = {
    "line": (
        "The program waits for a line. Answer this prompt with send_command_input, input_text "
        "ending in \\n."
        " || Answering it takes a tool that you do not have."
    ),
    "secret": (
        "The program hides what is typed, or its question ends like one for a password, so your "
        "answer is not recorded."
        " Answer an ordinary question as any other. Never guess a password."
        " Name a stored one with send_command_input (secret='…', Enter is sent after it), or send "
        "the one you were given, ending in \\n;"
        " with neither, keys=['ctrl-c'] leaves the question."
        " || Answering it takes a tool that you do not have."
    ),
    "key": (
        "The program waits for a key. Use send_command_input with keys=[…] or the character "
        "itself, without \\n."
        " || Answering it takes a tool that you do not have."
    ),
    "screen": (
        "A full-screen program has the terminal."
        " Look at it with send_command_input(view='screen') and drive it by keys such as 'down', "
        "'tab', 'enter', 'escape'."
        " || read_session_output(view='screen') shows it."
    ),
    "shell": (
        "A shell waits for its next command line. Use send_command_input, input_text ending in "
        "\\n; 'exit\\n' ends the shell."
        " || Answering it takes a tool that you do not have."
    ),
}
# The kinds of prompts at which Enter completes what was typed.
_TAKES_LINES: Final = frozenset({"line", "secret", "shell"})
_UNENTERED: Final = (
    "No Enter was typed after your text. To enter the text, use "
    "send_command_input(input_text='\\n'). || No Enter was typed after your text."
)
_ENDED: Final = {
    "terminated": "The session was terminated.",
    "timed_out": (
        "Its lifetime ran out; start again with a longer lifetime_seconds if it needs more time. "
        "The project sets the maximum"
        " (max_lifetime_seconds; an operator raises it: admin > Projects)."
    ),
    "lost": (
        "It was lost: its host rebooted or was revoked, the process that held it died, or its "
        "lifetime ran out while its host was away. How"
        " it ended is not known; what it had printed, as far as the server got it, is here."
    ),
    "start_failed": "The program could not be started.",
    "expired": (
        "The host did not take the command in time; it was not started and never will be. The same "
        "call again, also with its request_id, starts the program in another session."
    ),
}
# The lifetime of a kind of session has the name and the unit of its tool's argument.
_TIME_OVER: Final = {
    "background": (
        "Its lifetime ran out; start it again with a longer lifetime, in milliseconds, if it needs "
        "more time."
    ),
    "one_shot": "Its timeout ran out; give it a longer timeout_seconds if it needs more time.",
    "job": "Its timeout ran out; give it a longer timeout if it needs more time.",
}
_WAIT_ON: Final = {
    "interactive": (
        "Still running. Wait on with send_command_input(input_text='', wait_seconds=30)."
        " || Look again with read_session_output in a moment. || Look again with get_session in a "
        "moment."
        " || Look again with list_sessions in a moment."
    ),
    "background": (
        "Still running. Wait on with read_output(timeout=30000). || Look again with "
        "read_session_output in a moment."
        " || Look again with get_session in a moment. To stop it: stop_command."
    ),
    "one_shot": (
        "Still running. Look again with get_session in a moment. || Look again with "
        "list_sessions in a moment."
    ),
    "job": (
        "Still running. Ask again with query_command_status. || Look again with get_session "
        "in a moment."
    ),
}
_UNCONFIRMED: Final = (
    "The host has not said yet whether it started the program. Do not start it a second time "
    "before you know what became of it."
    " Look again with get_session(session_id). || Look again with read_session_output. || Look "
    "again with list_sessions."
)
_START_LOST: Final = (
    "The host was sent the command and never said what became of it, so the program may have run. "
    "Look at what it would have changed"
    " before you start it again."
)
_MAY_TYPE: Final = (
    "To stop it: send_command_input with keys=['ctrl-c'] or terminate=true."
    " If activity says that it takes input (telnet, nc), you may type with send_command_input."
)
_UNREACHABLE: Final = (
    "The host is out of reach at the moment. The program goes on there and its output follows. "
    "Look again with"
    " send_command_input(input_text='', wait_seconds=30). || Look again in a moment."
)
_ANSWER_LATER: Final = (
    " Its host is out of reach at the moment: an answer has to wait until it is back."
)
_TIMED_OUT: Final = (
    "If it waits for an answer, run it with start_interactive_command. If it only takes long, run "
    "it with start_command."
    " || If it only takes long, run it with run_command and a longer timeout."
    " || If it only takes long, run it with start_interactive_command and a longer "
    "lifetime_seconds."
    " || If it only takes long, split it into parts."
    " What it printed until then is in stdout and stderr."
)
_HOST_AWAY: Final = (
    "Its host is out of reach. Do not run it again before you know what became of it. "
    "get_session(session_id) shows it."
    " || list_sessions shows it."
)
_OMITTED: Final = (
    "{size} bytes were left out of the middle. read_session_output(offset={offset}) shows "
    "them. || Ask for less with max_output_bytes."
)


def hint_for(
    state: TerminalState,
    *,
    prompt: Prompt | None,
    end_reason: str | None,
    exit_code: int | None,
    signal: str | None,
    is_online: bool,
    kind: str = "interactive",
    survivors: Sequence[str] | None = (),
    is_confirmed: bool = True,
    is_unentered: bool = False,
) -> str:
    """The hint of a terminal result.

    ``kind`` is the kind of the session. ``survivors`` are the processes that outlived it, None if
    they are not known. ``is_confirmed`` is False if the host never said whether the program began.
    ``is_unentered``: the caller has typed text without Enter.
    """
    if not is_confirmed:
        return _START_LOST if state == "exited" else said(_UNCONFIRMED)
    if state == "exited":
        if end_reason == "timed_out" and kind in _TIME_OVER:
            return sentences(_TIME_OVER[kind], _left(survivors))
        return ended_hint(end_reason, exit_code, signal, survivors)
    if prompt is not None:
        doubt = (
            " This is a guess from its text and silence: check the output first."
            if prompt.evidence == "heuristic"
            else ""
        )
        unentered = said(_UNENTERED) if is_unentered and prompt.kind in _TAKES_LINES else ""
        answer = sentences(unentered, said(_ANSWER[prompt.kind]))
        return answer + doubt + ("" if is_online else _ANSWER_LATER)
    if kind != "interactive":
        return said(_WAIT_ON[kind])
    return said(f"{_WAIT_ON[kind]} {_MAY_TYPE}" if is_online else _UNREACHABLE)


def one_shot_timed_out_hint() -> str:
    """The hint for a one-shot that was ended: the tools that suit such a command."""
    return said(_TIMED_OUT)


def host_away_hint() -> str:
    """The hint for a one-shot whose host is out of reach."""
    return said(_HOST_AWAY)


def omitted_hint(offset: int, size: int) -> str:
    """The hint for output whose middle is left out: how to read that."""
    return said(_OMITTED, offset=offset, size=size)


def unsettled_hint() -> str:
    """The hint for a new size that the host has not confirmed while the call waited."""
    return "The host has not confirmed the new size yet; it is set as soon as the host takes it."


def untyped_hint() -> str:
    """The hint for an input that the host has not confirmed while the call waited."""
    return "The host has not confirmed your input yet, and may still type it: do not send it again."


def ended_hint(
    end_reason: str | None,
    exit_code: int | None,
    signal: str | None,
    survivors: Sequence[str] | None,
) -> str:
    """The hint for a session that ended: its end, and the processes that still run."""
    if end_reason == "terminated" and survivors:
        return _survived("The session was terminated, but processes of it are left.", survivors)
    return sentences(_end(end_reason, exit_code, signal), _left(survivors))


def stopped_hint(survivors: Sequence[str] | None) -> str:
    """The hint for a program that was stopped; empty if no process of it is left."""
    if survivors:
        return _survived("The program ended, but processes of it are left.", survivors)
    return _left(survivors)


def _end(end_reason: str | None, exit_code: int | None, signal: str | None) -> str:
    if end_reason in _ENDED:
        return _ENDED[end_reason]
    if signal:
        return f"The program was killed by {signal}."
    if exit_code is None:
        return "The program ended; it is not known how."
    return (
        "The program exited with code "
        f"{exit_code}.{'' if exit_code == 0 else ' Its output may say why.'}"
    )


def _left(survivors: Sequence[str] | None) -> str:
    if survivors is None:
        return "It is not known whether processes of the program still run on the host."
    return f"Still running on the host: {', '.join(survivors)}." if survivors else ""


def _survived(what: str, survivors: Sequence[str]) -> str:
    return (
        f"{what} {_left(survivors)} A process of another user can be ended by that user or by root "
        "only."
    )


def abnormal_end(
    end_reason: str | None, ended_by: str | None, *, is_confirmed: bool
) -> tuple[str, str] | None:
    """(stable code, explanation) of an end that was not the program's own.

    None if the program ended by itself, and if it never began.
    """
    if end_reason == "lost":
        return ("LOST", _ENDED["lost"]) if is_confirmed else (START_LOST, _START_LOST)
    if end_reason == "timed_out":
        return (
            "TIMED_OUT",
            "It was ended because its time was over; what it had printed until then is here.",
        )
    if end_reason == "terminated":
        return (
            "TERMINATED",
            f"It was ended by {ended_by or 'a caller'}; what it had printed until then is here.",
        )
    return None


def refused_hint(code: str, message: str) -> str:
    """The hint about the last input, for a call that did not send that input."""
    reason = f"{code}: {message}" if message else code
    if code == INPUT_UNCONFIRMED:
        return f"What became of the last input is not known ({reason})."
    return f"The last input was refused ({reason})."


def takeover_hint(operator: str, note: str, clock: LifetimeClock, now: datetime) -> str:
    """The hint for a session that a person has taken over, or has handed back with a note.

    It is empty if there is neither an ``operator`` nor a ``note``.
    """
    if not operator:
        back = "A person had taken this session over and handed it back with a note: "
        return f"{back}{note}" if note else ""
    is_paused = clock.is_paused(now)
    lifetime = "does not run meanwhile" if is_paused else f"runs on meanwhile, {_until(clock, now)}"
    return (
        f"{operator} has taken this session over and types there: only wait on until it is handed "
        f"back. Its lifetime {lifetime}."
    )


def clock_hint(clock: LifetimeClock, now: datetime, *, is_answered: bool) -> str:
    """Tell the person who has just taken a session over if the clock of its lifetime is paused.

    ``is_answered`` is False while the host has not answered the request to pause it.
    """
    if clock.is_paused(now) and (latest := clock.expires_at_latest(now)) is not None:
        return (
            "Its lifetime does not run while you have the keyboard. It ends at "
            f"{in_iso(latest)} at the latest."
        )
    why = (
        "its host cannot stop it, or its project does not let it stand any longer"
        if is_answered
        else "its host has not answered yet"
    )
    return f"Its lifetime runs on, {_until(clock, now)}: {why}."


def in_iso(moment: datetime) -> str:
    """A moment in ISO 8601, such as ``2026-01-31T14:03:07Z``."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _until(clock: LifetimeClock, now: datetime) -> str:
    expires_at = clock.expires_at(now)
    return f"until {in_iso(expires_at)}" if expires_at is not None else "from its start on"
