"""W3: measure the delay of a call after a prompt that follows a silence, and wrong claims.

``python -m benchmarks.silence``
"""

import re
import shlex
import time

from benchmarks.harness import PYTHON, arguments, in_ms, measure
from tests.support.mcp.client import Caller
from tests.support.stack import Stack

_ASKS = """
import time, sys
while True:
    time.sleep({silence})
    sys.stdout.write("%.6f ? " % time.monotonic()); sys.stdout.flush()
    sys.stdin.readline()
"""
# Each works for at least a second after saying what looks like a question; then it really asks.
_TRAPS = {
    "trap": "printf 'Continue? [y/N] '; sleep 1; echo; read -p 'Now: ' x",
    "gap": "for i in 1 2 3; do printf 'part? '; sleep 0.35; done; echo; read -p 'Now: ' x",
    "silent": "sleep 1; read -p 'Now: ' x",
    "busy": (
        "printf 'Password: '; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; echo; read "
        "-p 'Now: ' x"
    ),
}


async def _latencies(caller: Caller, silence: float, turns: int) -> list[float]:
    seconds = []
    async with caller.terminal(
        f"{PYTHON} -c {shlex.quote(_ASKS.format(silence=silence))}", wait_seconds=10
    ) as session:
        for _ in range(turns):
            await session.send("\n", wait_seconds=10)
            now = time.monotonic()
            stamps = re.findall(r"(\d+\.\d{6}) \? $", session.result["output"])
            if session.result["state"] == "awaiting_input" and stamps:
                seconds.append(now - float(stamps[-1]))
    return seconds


async def _wrong_claims(caller: Caller, script: str, runs: int) -> int:
    wrong = 0
    for _ in range(runs):
        async with caller.terminal(f"bash -c {shlex.quote(script)}", wait_seconds=10) as session:
            wrong += (
                session.result["state"] != "awaiting_input"
                or session.result["prompt"]["text"] != "Now: "
            )
    return wrong


def main() -> None:
    """Print the delay after the prompt and the number of wrong claims."""
    options = arguments(main.__doc__ or "", turns=40, long_turns=8, runs=10)

    async def body(_: Stack, caller: Caller) -> None:
        for silence, turns in ((0.3, options.turns), (3.0, options.long_turns)):
            seconds = await _latencies(caller, silence, turns)
            print(
                in_ms(f"W3 after {silence} s", seconds, "p50 <= 20"),
                f"  known: {len(seconds)} of {turns}",
            )
        for name, script in _TRAPS.items():
            print(
                f"W3 {name:<8} wrong claims: {await _wrong_claims(caller, script, options.runs)} "
                f"of {options.runs}   target 0"
            )

    measure(body)


if __name__ == "__main__":
    main()
