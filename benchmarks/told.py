"""The time from a program's read until the caller is told of it, for programs of several kinds.

Each program notes the time right before it reads, or in the case of a shell, when it makes its
prompt. The work before takes up to 30 ms.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from benchmarks.harness import PYTHON
from benchmarks.sides import Side
from benchmarks.workloads import Figures, per_call, percentiles
from tests.support.mcp.light_client import LightCaller

_PROGRAM: Final = Path(__file__).parents[1] / "tests/programs/fixtures/clocked/takes_turns.py"
_BASH: Final = "PROMPT_COMMAND='echo ${EPOCHREALTIME/./}000 >> LOG'\nPS1='next? '\n"
_FISH: Final = "function fish_prompt; date +%s%N >> LOG; echo -n 'next? '; end\n"
_PATIENCE_SECONDS: Final = 10
_NEVER: Final = 2**63


def _clocked(mode: str) -> Callable[[Path], str]:
    return lambda log: f"{PYTHON} {_PROGRAM} '{mode}' {log} 0 0.03"


def _bash(log: Path) -> str:
    return f"bash --noprofile --rcfile {_startup(log, _BASH)} -i"


def _fish(log: Path) -> str:
    return f"fish --no-config -C 'source {_startup(log, _FISH)}'"


def _tmux(log: Path) -> str:
    return f"tmux -S {log}.socket -f /dev/null new '{_bash(log)}'"


def _startup(log: Path, text: str) -> Path:
    startup = log.with_suffix(".rc")
    startup.write_text(text.replace("LOG", str(log)))
    return startup


_SHELLS: Final = {"bash": _bash, "fish": _fish, "tmux": _tmux}
WAYS: Final = {way: _clocked(way) for way in ("read", "key", "select", "epoll")} | _SHELLS


async def told(side: Side, way: str, turns: int) -> Figures:
    """One session of a program, in which turns are taken."""
    with tempfile.TemporaryDirectory(prefix="holdline-told-") as directory:
        log = Path(directory) / "log"
        caller = side.caller()
        answer = await caller.call(
            "start_interactive_command", command=WAYS[way](log), wait_seconds=_PATIENCE_SECONDS
        )
        session = str(answer["session_id"])
        # Shells are told what to do, and know no clock but that of the day.
        is_shell = way in _SHELLS
        clock = time.time_ns if is_shell else time.monotonic_ns
        before, seconds, early = side.spent(), [], 0
        for number in range(turns):
            await _noted(log, number)
            line = f"sleep 0.0{number % 4}\n" if is_shell else "\n"
            await _turn(caller, session, line)
            since = (clock() - _begun(log, number + 1)) / 1e9
            early += since < 0
            seconds += [since] if since >= 0 else []
        figures = {**percentiles(seconds), "early": float(early), **per_call(side, before, turns)}
        await caller.call("send_command_input", session_id=session, terminate=True)
        caller.close()
        return figures


async def _turn(caller: LightCaller, session: str, line: str) -> None:
    answer = await caller.call(
        "send_command_input",
        session_id=session,
        input_text=line,
        wait_seconds=_PATIENCE_SECONDS,
    )
    if answer["state"] != "awaiting_input":
        raise SystemExit(f"a prompt was not told: {answer}")


def _begun(log: Path, number: int) -> int:
    """Return the time at which a read began, ``_NEVER`` if it has not begun."""
    lines = log.read_text().split() if log.exists() else []
    return int(lines[number]) if len(lines) > number else _NEVER


async def _noted(log: Path, number: int) -> None:
    while _begun(log, number) == _NEVER:  # noqa: ASYNC110 - another program writes the file
        await asyncio.sleep(0.005)
