"""One line that tells a caller what to do next with a session. The words a model is steered by stand here and in the tools' guidance."""

from typing import Final

from projects.results import Prompt, TerminalState

_ANSWER: Final = {
    "line": "The program waits for a line: answer this prompt with send_command_input, input_text ending in \\n.",
    "secret": (
        "The program asks for a secret and hides what is typed. Never guess one: name a stored one (secret='…', typed with Enter), or send"
        " the one you were given, ending in \\n, or keys=['ctrl-c'] to give up."
    ),
    "key": "The program waits for a key: send_command_input with keys=[…] or the character itself, without \\n.",
    "screen": (
        "A full-screen program has the terminal: look with read_session_output(view='screen') and drive it by keys such as"
        " 'down', 'tab', 'enter', 'escape'."
    ),
    "shell": "A shell waits for its next command line: send_command_input, input_text ending in \\n; 'exit\\n' ends it.",
}
_ENDED: Final = {
    "terminated": "The session was terminated.",
    "timed_out": "Its lifetime ran out; start again with a longer lifetime_seconds if it needs more time.",
    "lost": "Its host rebooted or the process that held it died; whatever it had printed until then is here.",
    "start_failed": "The program could not be started.",
    "expired": "The host did not take the command in time; it was not started and never will be.",
}
_WAIT_ON: Final = (
    "Still running; wait on with send_command_input(input_text='', wait_seconds=30). If activity says that it takes input (telnet, nc),"
    " you may type. To stop it: keys=['ctrl-c'] or terminate=true."
)
_WAIT_ON_ELSEWHERE: Final = {
    "background": "Still running; wait on with read_output(timeout=30000). To stop it: stop_command.",
    "one_shot": "Still running; look again with get_session in a moment.",
    "job": "Still running; ask again with query_command_status.",
}
_UNREACHABLE: Final = (
    "The host is out of reach at the moment; the program goes on there and its output follows. Look again with"
    " send_command_input(input_text='', wait_seconds=30)."
)

ONE_SHOT_TIMED_OUT: Final = (
    "If it waits for an answer, run it with start_interactive_command; if it only takes long, with start_command (read_output,"
    " stop_command). What it printed until then is in stdout and stderr."
)
HOST_AWAY: Final = "Its host is out of reach. Do not run it again before get_session(session_id) has shown what became of it."


def hint_for(
    state: TerminalState,
    *,
    prompt: Prompt | None,
    end_reason: str | None,
    exit_code: int | None,
    signal: str | None,
    is_online: bool,
    kind: str = "interactive",
) -> str:
    """The hint of a terminal result; ``kind`` is the session's."""
    if state == "exited":
        return ended_hint(end_reason, exit_code, signal)
    if prompt is not None:
        doubt = " This is a guess from its text and silence: check the output first." if prompt.evidence == "heuristic" else ""
        return _ANSWER[prompt.kind] + doubt
    if kind in _WAIT_ON_ELSEWHERE:
        return _WAIT_ON_ELSEWHERE[kind]
    return _WAIT_ON if is_online else _UNREACHABLE


def omitted_hint(offset: int, size: int) -> str:
    """Where the left-out middle can be read."""
    return f" {size} bytes were left out of the middle: read_session_output(offset={offset})."


def ended_hint(end_reason: str | None, exit_code: int | None, signal: str | None) -> str:
    """What its end means."""
    if end_reason in _ENDED:
        return _ENDED[end_reason]
    if signal:
        return f"The program was killed by {signal}."
    return "The program ended well." if exit_code == 0 else f"The program ended with exit code {exit_code}; its output says why."


def refused_hint(code: str, message: str) -> str:
    """What became of the last input, for a call that did not send it."""
    return f" The last input was refused ({code}{': ' if message else ''}{message})."


def takeover_hint(operator: str, note: str) -> str:
    """That a person has the keyboard now, or had it and what they left to be known."""
    if operator:
        return f" {operator} has taken this session over and types there: only wait on until it is handed back."
    return f" A person had taken this session over and handed it back with a note: {note}" if note else ""
