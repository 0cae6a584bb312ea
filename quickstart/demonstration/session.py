"""The demonstration: one interactive session, driven as any caller would drive it.

Nothing depends on it. If the owner's policy refuses its program, or the project has no place for
another session, the server stays up without it, and the next start tries it again.
"""

import shlex
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from quickstart.demonstration import transcript
from quickstart.demonstration.mcp_calls import Client, call
from quickstart.demonstration.transcript import Turn
from quickstart.errors import QuickstartError, ToolRefused
from quickstart.options import ROOT

_HIDDEN: Final = "correct horse"
_PROGRAM: Final = ROOT / "quickstart" / "demonstration" / "asking_program.py"
# A list of allowed commands may name the full path or the short name.
_INTERPRETERS: Final = (sys.executable, "python3")
# A demonstration that could not be ended must not use up a session of the project for long.
_LIFETIME_SECONDS: Final = 60.0


@dataclass(frozen=True)
class Outcome:
    """The lines to print, and whether the demonstration failed; being left out is no failure."""

    lines: list[str]
    has_failed: bool = False
    session_id: str = ""

    @property
    def is_shown(self) -> bool:
        """True if somebody has seen the demonstration as it should be."""
        return bool(self.session_id) and not self.has_failed


async def show(client: Client, controller: str) -> Outcome:
    """Run the demonstration on ``controller``. Never raises a QuickstartError."""
    try:
        turns = await _turns(client, controller)
    except ToolRefused as refused:
        return _left_out(refused)
    except QuickstartError as error:
        return Outcome([f"The demonstration failed: {error}"], has_failed=True)
    found = transcript.problems(turns, _HIDDEN)
    problem = [f"The demonstration did not go as expected: {'; '.join(found)}"] if found else []
    session_id = str(turns[0].result["session_id"])
    return Outcome([*transcript.render(turns), *problem], bool(found), session_id)


def _left_out(refused: ToolRefused) -> Outcome:
    match refused.code:
        case "COMMAND_NOT_ALLOWED" | "CWD_NOT_ALLOWED":
            why = (
                "the allowed commands (ALLOWED_COMMANDS, or those of the project) leave its "
                "program out"
            )
        case "SESSION_LIMIT_REACHED":
            why = (
                "callers hold all the interactive sessions that the project allows, if it allows "
                "any"
            )
        case _:
            return Outcome([f"The demonstration failed: {refused}"], has_failed=True)
    return Outcome([f"The demonstration is left out: {why}. The next start tries it again."])


async def _turns(client: Client, controller: str) -> list[Turn]:
    """Start the asking program and answer its prompts; ends the program in any case."""
    turns = [await _started(client, controller)]
    session_id = turns[0].result["session_id"]
    try:
        for typed, shown in (("Ada\n", "Ada"), (f"{_HIDDEN}\n", "(hidden)"), ("y\n", "y")):
            if turns[-1].state != "awaiting_input":
                break
            arguments = {"session_id": session_id, "input_text": typed}
            turns.append(await _turn(client, shown, "send_command_input", arguments))
    finally:
        # This also runs after a Ctrl-C in the middle.
        if turns[-1].state != "exited":
            with suppress(QuickstartError):
                await call(
                    client, "send_command_input", {"session_id": session_id, "terminate": True}
                )
    return turns


async def _started(client: Client, controller: str) -> Turn:
    first, *others = (
        f"{shlex.quote(python)} {shlex.quote(str(_PROGRAM))}" for python in _INTERPRETERS
    )
    try:
        return await _start(client, controller, first)
    except ToolRefused as refused:
        if refused.code != "COMMAND_NOT_ALLOWED":
            raise
    return await _start(client, controller, *others)


async def _start(client: Client, controller: str, command: str) -> Turn:
    arguments = {
        "command": command,
        "controller": controller,
        "lifetime_seconds": _LIFETIME_SECONDS,
    }
    return await _turn(client, "(the command)", "start_interactive_command", arguments)


async def _turn(client: Client, shown: str, tool: str, arguments: Mapping[str, Any]) -> Turn:
    started = time.perf_counter()
    result = await call(client, tool, arguments)
    return Turn(shown, time.perf_counter() - started, result)
