"""Errors of typed input: its keys, signals and size, and the refusal of the host."""

from collections.abc import Sequence
from typing import ClassVar
from uuid import UUID

from projects.errors.base import Conflict, InvalidInput
from projects.errors.sessions import SessionEnded


class UnknownKey(InvalidInput):
    """No key of a terminal has this name."""

    code = "UNKNOWN_KEY"

    def __init__(self, key: str, known: Sequence[str]) -> None:
        self.key = key
        self.hint = (
            f"Keys: {', '.join(known)}; also ctrl-a to ctrl-z, f1 to f12, single characters "
            "and alt-<character>. Text goes into input_text."
        )
        super().__init__(f"there is no key named {key[:32]!r}")


class UnknownSignal(InvalidInput):
    """No signal that may be sent has this name."""

    code = "UNKNOWN_SIGNAL"

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.hint = f"Signals: {', '.join(known)}."
        super().__init__(f"there is no signal named {name[:32]!r}")


class InputTooLarge(InvalidInput):
    """The data is larger than one input may be."""

    code = "INPUT_TOO_LARGE"
    status = 413
    hint = "Send it in several inputs, or put the data into a file on the host."

    def __init__(self, size_bytes: int, limit_bytes: int, *, is_all_at_once: bool = False) -> None:
        self.size_bytes, self.limit_bytes = size_bytes, limit_bytes
        if is_all_at_once:
            self.hint = (
                "Put the data into a file on the host and give its name. To write it in parts "
                "use start_command and write_input."
            )
        super().__init__(
            f"the input has {size_bytes} bytes; at most {limit_bytes} can be sent at once"
        )


class InputRefused(Conflict):
    """The host refused an input; ``code`` is the host's reason, a key of ``HINTS``.

    Nothing of the input was typed. The one exception is INPUT_BLOCKED: the program stopped reading
    in the middle of the input, and the message says how much was typed.
    """

    HINTS: ClassVar[dict[str, str]] = {
        "COMMAND_NOT_ALLOWED": (
            "The host's policy has the last word. Type whole lines of plain commands that it "
            "allows."
        ),
        "INPUT_LINE_TOO_LONG": (
            "The terminal would cut this line silently. Split it, or put the data into a file."
        ),
        "INPUT_BLOCKED": "The program does not read its input. Wait, send ctrl-c, or terminate it.",
        "INPUT_OUT_OF_ORDER": (
            "An earlier input is missing on the host; look at the session before you go on."
        ),
        "NOT_ASKING_FOR_SECRET": (
            "Nothing was typed: a stored secret goes only to a program that is proven to read a "
            "hidden line now. Read the output first. If a line was begun there, end it first, "
            "or clear it with ctrl-u on a terminal."
        ),
        "READER_NOT_PROVEN": (
            "Nothing was typed. Start the program by itself, not in a shell, a chain or another "
            "terminal, and answer its first question."
        ),
        "SECRET_NOT_FOR_READER": (
            "Nothing was typed. This secret is for the programs its operator named, started "
            "by themselves."
        ),
        "ENV_NOT_ALLOWED": "Nothing was typed. Start the session again without this variable.",
        "HOST_TOO_OLD": (
            "Nothing was typed. Have the host's operator install the present "
            "holdline-controller, then start a new session."
        ),
        "NOT_A_TERMINAL": (
            "The program runs on pipes: send ctrl-c alone and ctrl-d last. Start a "
            "session on a terminal for anything more."
        ),
        "HOST_STOPPED": (
            "The operator of the host has stopped it. The session can still be read and terminated."
        ),
        "RULES_UNREADABLE": (
            "Nothing of it was typed: the host is short of descriptors or memory. Send it "
            "again under a new request_id."
        ),
        "REVOKED": (
            "Nothing of it was typed: the host's credential or the API token was revoked before."
        ),
        "STDIN_CLOSED": "The program's input is at its end. Read its output, or start it again.",
        "SESSION_ENDED": SessionEnded.hint,
    }

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        self.hint = self.HINTS.get(code, Conflict.hint)
        super().__init__(message)


class ResizeRefused(InputRefused):
    """The refusals that a new size of a terminal can get, for the tool to declare."""

    HINTS: ClassVar[dict[str, str]] = {
        **{code: InputRefused.HINTS[code] for code in ("REVOKED", "SESSION_ENDED")},
        "NOT_A_TERMINAL": (
            "Only a terminal has a size. Start a session on a terminal if the program needs one."
        ),
    }


class PersonPending(Conflict):
    """A person is asked for the secret, and has not typed it yet. Nothing was typed."""

    code = "PERSON_PENDING"
    retryable = True

    def __init__(self, event_id: str, link: str, request_id: UUID | None = None) -> None:
        under = "" if request_id is None else f", with the request id {request_id},"
        self.hint = (
            f"Tell your user. Repeat the same call{under} to go on waiting. Do not guess the "
            "secret, and do not ask for it in a conversation."
        )
        super().__init__(f"a person is asked (event {event_id}) and types it at {link}")


class PromptGone(Conflict):
    """Something was typed since the person saw the prompt. Nothing of the secret was typed."""

    code = "PROMPT_GONE"
    hint = "Look at the session again: the program may ask for something else now."

    def __init__(self) -> None:
        super().__init__("the prompt was answered meanwhile, so nothing was typed")
