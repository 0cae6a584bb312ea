"""The demonstration as text: for each turn the input, the time, and the program's state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Turn:
    """One call: the input as people see it, its time in seconds, and the tool's result."""

    typed: str
    seconds: float
    result: Mapping[str, Any]

    @property
    def state(self) -> str:
        """The program's state: ``running``, ``awaiting_input`` or ``exited``."""
        return str(self.result.get("state"))

    @property
    def kind(self) -> str:
        """The kind of input that the program waits for; empty if it waits for none."""
        return str((self.result.get("prompt") or {}).get("kind") or "")

    @property
    def evidence(self) -> str:
        """The evidence that the program waits; empty if it does not."""
        return str((self.result.get("prompt") or {}).get("evidence") or "")

    @property
    def output(self) -> str:
        """The new text on the terminal in this turn."""
        return str(self.result.get("output") or "")


def render(turns: list[Turn]) -> list[str]:
    """The transcript as lines to print."""
    lines: list[str] = []
    for number, turn in enumerate(turns, 1):
        lines.append(f"  turn {number}  {turn.seconds * 1000:6.1f} ms   typed: {turn.typed}")
        lines.extend(f"      | {line}" for line in turn.output.splitlines())
        if turn.state == "awaiting_input":
            lines.append(
                f"      -> waits for input   kind: {turn.kind}   evidence: {turn.evidence}"
            )
        elif turn.state == "exited":
            lines.append(f"      -> ended   exit code: {turn.result.get('exit_code')}")
        else:
            lines.append(f"      -> {turn.state}")
    return lines


def problems(turns: list[Turn], hidden: str) -> list[str]:
    """Every deviation from the expected turns, in words.

    Expected are three prompts, then an exit with code 0, and the hidden input in no result.
    """
    found = []
    expected = [
        ("awaiting_input", "line"),
        ("awaiting_input", "secret"),
        ("awaiting_input", "line"),
        ("exited", ""),
    ]
    for number, (turn, (state, kind)) in enumerate(zip(turns, expected, strict=False), 1):
        if (turn.state, turn.kind) != (state, kind):
            found.append(
                f"turn {number} should be {state} {kind}".rstrip()
                + f", it is {turn.state} {turn.kind}".rstrip()
            )
    if len(turns) != len(expected):
        found.append(f"there should be {len(expected)} turns, there were {len(turns)}")
    elif turns[-1].result.get("exit_code") != 0:
        found.append(f"the exit code should be 0, it is {turns[-1].result.get('exit_code')}")
    if any(hidden in str(turn.result) for turn in turns):
        found.append("the hidden input came back in a result")
    return found
