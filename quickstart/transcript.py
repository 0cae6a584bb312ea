"""The demonstration as text: what was typed, how long the answer took, what was known about the program then."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """One call: what was typed (as shown to people), the seconds it took, and the tool's structured result."""

    typed: str
    seconds: float
    result: Mapping[str, Any]

    @property
    def state(self) -> str:
        """``running``, ``awaiting_input`` or ``exited``."""
        return str(self.result.get("state"))

    @property
    def kind(self) -> str:
        """What kind of input is awaited; empty when none is."""
        return str((self.result.get("prompt") or {}).get("kind") or "")

    @property
    def evidence(self) -> str:
        """How it is known; empty when nothing is awaited."""
        return str((self.result.get("prompt") or {}).get("evidence") or "")

    @property
    def output(self) -> str:
        """What the terminal showed in this turn."""
        return str(self.result.get("output") or "")


def render(turns: list[Turn]) -> list[str]:
    """The lines to print."""
    lines: list[str] = []
    for number, turn in enumerate(turns, 1):
        lines.append(f"  turn {number}  {turn.seconds * 1000:6.1f} ms   typed: {turn.typed}")
        lines.extend(f"      | {line}" for line in turn.output.splitlines())
        if turn.state == "awaiting_input":
            lines.append(f"      -> waits for input   kind: {turn.kind}   evidence: {turn.evidence}")
        elif turn.state == "exited":
            lines.append(f"      -> ended   exit code: {turn.result.get('exit_code')}")
        else:
            lines.append(f"      -> {turn.state}")
    return lines


def problems(turns: list[Turn], hidden: str) -> list[str]:
    """What is not as it must be: three prompts, known from the kernel, then a clean exit, and the hidden input nowhere."""
    found = []
    expected = [("awaiting_input", "line"), ("awaiting_input", "secret"), ("awaiting_input", "line"), ("exited", "")]
    for number, (turn, (state, kind)) in enumerate(zip(turns, expected, strict=False), 1):
        if (turn.state, turn.kind) != (state, kind):
            found.append(f"turn {number} should be {state} {kind}".rstrip() + f", it is {turn.state} {turn.kind}".rstrip())
    if len(turns) != len(expected):
        found.append(f"there should be {len(expected)} turns, there were {len(turns)}")
    elif turns[-1].result.get("exit_code") != 0:
        found.append(f"the exit code should be 0, it is {turns[-1].result.get('exit_code')}")
    if any(hidden in str(turn.result) for turn in turns):
        found.append("the hidden input came back in a result")
    return found
