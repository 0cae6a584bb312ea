"""``scripted:demo``: a whole run without a key. It reads what the terminal says and answers as a model would, by a fixed script."""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final

from agent.conversation import Answer, Call, Conversation, ModelNotUsable, OfferedTool, OnText

_SESSION: Final = re.compile(r'"session_id":"([0-9a-f-]{36})"')
_PROGRAM: Final = (
    'bash -c \'read -p "Your name: " name; read -sp "A passphrase (hidden): " phrase; echo; '
    'echo "Welcome, $name: ${#phrase} characters it is."; read -p "Continue? [y/N] " yes; echo "You said $yes."\''
)


def _start(_seen: str) -> Answer:
    return _call("I look at the host first.", "execute_command", command="uname -sr && id -un")


def _ask(_seen: str) -> Answer:
    return _call("Now a program that asks questions, on a terminal.", "start_interactive_command", command=_PROGRAM, wait_seconds=20)


def _typing(text: str, says: str) -> Callable[[str], Answer]:
    def answer(seen: str) -> Answer:
        session = _SESSION.findall(seen)
        if not session:
            return _call("There is no session to type into.", "finish_task", success=False, summary="the program did not start")
        return _call(says, "send_command_input", session_id=session[-1], input_text=text, wait_seconds=20)

    return answer


def _finish(seen: str) -> Answer:
    is_done = "You said y." in seen
    summary = "The program was asked three questions and ended well." if is_done else "The program did not say what it should."
    return _call("It has ended.", "finish_task", success=is_done, summary=summary)


_DEMO: Final[Sequence[Callable[[str], Answer]]] = (
    _start,
    _ask,
    _typing("Ada\n", "It waits for a line: a name."),
    _typing("correct horse\n", "It hides what is typed: a secret. Nothing of it is recorded."),
    _typing("y\n", "It asks whether to continue."),
    _finish,
)


class ScriptedClient:
    """A model whose answers are written down; ``name`` is ``scripted:demo``. Raises ModelNotUsable for any other."""

    def __init__(self, name: str) -> None:
        if name != "scripted:demo":
            raise ModelNotUsable(f"there is no script {name[:64]!r}", hint="The one there is: scripted:demo.")

    async def answer(self, conversation: Conversation, _tools: Sequence[OfferedTool], on_text: OnText) -> Answer:
        """The next line of the script."""
        done = len(conversation.exchanges)
        seen = "\n".join(result for exchange in conversation.exchanges for result in exchange.results)
        answer = _DEMO[min(done, len(_DEMO) - 1)](seen)
        for word in re.findall(r"\S+\s*", answer.text):
            on_text(word)
        return answer

    async def close(self) -> None:
        """Nothing to give back."""


def _call(says: str, tool: str, **arguments: Any) -> Answer:
    return Answer(text=says, calls=(Call(f"call-{abs(hash((tool, says))):x}", tool, arguments),), input_tokens=100, output_tokens=20)
