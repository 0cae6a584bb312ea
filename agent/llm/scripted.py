"""``scripted:demo``: a whole run without an API key.

It reads the terminal and answers as a model would, by a fixed script.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent.llm.conversation import Answer, Call, Conversation, ModelNotUsable, OfferedTool, OnText

DEMO: Final = "scripted:demo"
_START: Final = "start_interactive_command"
_HOSTS: Final = "list_controllers"
_PROGRAM: Final = (
    'bash -c \'read -p "Your name: " name; read -sp "A passphrase (hidden): " phrase; echo; '
    'echo "Welcome, $name: ${#phrase} characters it is."; read -p "Continue? [y/N] " yes; echo '
    '"You said $yes."\''
)


class Seen:
    """The results of the calls so far, for the script."""

    def __init__(self, conversation: Conversation) -> None:
        self._results = [
            (call.name, result)
            for exchange in conversation.exchanges
            for call, result in zip(exchange.answer.calls, exchange.results, strict=False)
        ]
        self._newest = _facts(self._results[-1][1]) if self._results else {}

    @property
    def session(self) -> str:
        """The session that this run started; empty if there is none.

        Results may name sessions of others, which are not for this run.
        """
        started = (_facts(result) for name, result in self._results if name == _START)
        return next(
            (
                str(facts["session_id"])
                for facts in started
                if "code" not in facts and facts.get("session_id")
            ),
            "",
        )

    @property
    def has_asked_for_hosts(self) -> bool:
        """True once the script had to list the hosts of the project."""
        return any(name == _HOSTS for name, _result in self._results)

    @property
    def host(self) -> str:
        """The first host of the list that is online; empty without a list or such a host."""
        listed = (
            _facts(result).get("controllers", ())
            for name, result in self._results
            if name == _HOSTS
        )
        return next(
            (str(host["name"]) for hosts in listed for host in hosts if host.get("online")), ""
        )

    @property
    def has_to_choose(self) -> bool:
        """True if the newest call was refused because it named none of several hosts."""
        return self._newest.get("code") == "CONTROLLER_AMBIGUOUS"

    @property
    def refusal(self) -> str:
        """The refusal of the newest call with its hint; empty if the call was carried out."""
        if "code" not in self._newest:
            return ""
        code, error = self._newest["code"], self._newest.get("error", "")
        return f"{code}: {error}. {self._newest.get('hint', '')}".strip()

    def shows(self, text: str) -> bool:
        """Returns True if any result has the text."""
        return any(text in result for _name, result in self._results)


def _facts(result: str) -> Mapping[str, Any]:
    """The first line of a result: JSON, unless it was shortened."""
    try:
        facts = json.loads(result.split("\n", 1)[0])
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _look(seen: Seen) -> Answer:
    return _call(
        "I look at the host first.",
        "execute_command",
        command="uname -sr && id -un",
        **_on(seen.host),
    )


def _ask(seen: Seen) -> Answer:
    return _call(
        "Now a program that asks questions, on a terminal.",
        _START,
        command=_PROGRAM,
        wait_seconds=20,
        **_on(seen.host),
    )


def _on(host: str) -> Mapping[str, str]:
    return {"controller": host} if host else {}


def _typing(text: str, says: str) -> Callable[[Seen], Answer]:
    def answer(seen: Seen) -> Answer:
        return _call(
            says, "send_command_input", session_id=seen.session, input_text=text, wait_seconds=20
        )

    return answer


def _finish(seen: Seen) -> Answer:
    is_done = seen.shows("You said y.")
    summary = (
        "The program asked three questions and exited with code 0."
        if is_done
        else "The program did not say what it should."
    )
    return _call("It has ended.", "finish_task", success=is_done, summary=summary)


_DEMO: Final[Sequence[Callable[[Seen], Answer]]] = (
    _look,
    _ask,
    _typing("Ada\n", "It waits for a line: a name."),
    _typing("correct horse\n", "It hides what is typed: a secret. Nothing of it is recorded."),
    _typing("y\n", "It asks whether to continue."),
    _finish,
)


class ScriptedClient:
    """A model with fixed answers; ``name`` is ``scripted:demo``.

    Raises ModelNotUsable for any other name.
    """

    def __init__(self, name: str) -> None:
        if name != DEMO:
            raise ModelNotUsable(
                f"there is no script {name[:64]!r}", hint=f"The only script is {DEMO}."
            )

    async def answer(
        self, conversation: Conversation, _tools: Sequence[OfferedTool], on_text: OnText
    ) -> Answer:
        """The next line of the script.

        A refused call ends the script, because no later line would make sense. Only the choice of a
        host is made up for.
        """
        seen = Seen(conversation)
        # Two exchanges are no lines of the script: the refused first call, and the list of hosts.
        done = len(conversation.exchanges) - (2 if seen.has_asked_for_hosts else 0)
        if seen.has_to_choose and not seen.has_asked_for_hosts:
            answer = _call("There are several hosts. I take one that is online.", _HOSTS)
        elif seen.refusal:
            answer = _stopped(seen.refusal)
        else:
            answer = _DEMO[min(done, len(_DEMO) - 1)](seen)
        for word in re.findall(r"\S+\s*", answer.text):
            on_text(word)
        return answer

    async def close(self) -> None:
        """Does nothing: there is no connection."""


def _stopped(refusal: str) -> Answer:
    return _call("That was refused, so I stop here.", "finish_task", success=False, summary=refusal)


def _call(says: str, tool: str, **arguments: Any) -> Answer:
    return Answer(
        text=says,
        calls=(Call(f"call-{abs(hash((tool, says))):x}", tool, arguments),),
        input_tokens=100,
        output_tokens=20,
    )
