"""W5: many sessions taking turns at once. ``python -m benchmarks.crowd``"""

import asyncio
import os
import time

from benchmarks.harness import arguments, in_ms, measure
from benchmarks.turn import PROGRAMS
from tests.support.mcp.client import Caller, Terminal
from tests.support.processes import cpu_seconds
from tests.support.stack import Stack


def _spent(stack: Stack, sessions: list[Terminal]) -> dict[str, float]:
    """Processor seconds so far of each part, the callers in this process among them."""
    holders = [pid for session in sessions if (pid := stack.holder_pid(session.session_id))]
    assert stack.server is not None
    parts = {
        "callers": [os.getpid()],
        "server": [stack.server.pid],
        "daemon": stack.daemon_pids(),
        "holders": holders,
    }
    return {name: sum(map(cpu_seconds, pids)) for name, pids in parts.items()}


def main() -> None:
    """Print turns per second and the time of a turn under load."""
    options = arguments(main.__doc__ or "", sessions=100, turns=20, callers=4)

    async def body(stack: Stack, caller: Caller) -> None:
        command, line, answer = PROGRAMS["shell read"]
        sessions = [
            await caller.start(command, lifetime_seconds=280) for _ in range(options.sessions)
        ]
        seconds: list[float] = []
        right = 0

        async def take_turns(terminal: Terminal, mine: Caller) -> None:
            nonlocal right
            for turn in range(options.turns):
                before = time.perf_counter()
                result = await mine.call(
                    "send_command_input",
                    session_id=terminal.session_id,
                    input_text=line.format(turn),
                    wait_seconds=30,
                )
                seconds.append(time.perf_counter() - before)
                right += (
                    result["state"] == "awaiting_input" and answer.format(turn) in result["output"]
                )

        async def one_caller(number: int) -> None:
            async with stack.caller() as mine:
                await asyncio.gather(
                    *(
                        take_turns(terminal, mine)
                        for terminal in sessions[number :: options.callers]
                    )
                )

        before, started = _spent(stack, sessions), time.perf_counter()
        await asyncio.gather(*(one_caller(number) for number in range(options.callers)))
        elapsed = time.perf_counter() - started
        print(in_ms(f"W5 {options.sessions} sessions", seconds, "p95 <= 600"))
        print(
            f"   {len(seconds) / elapsed:.0f} turns/s   target >= 300; knows and is complete: "
            f"{100 * right / len(seconds):.2f} %"
        )
        spent = {
            name: 1000 * (value - before[name]) / len(seconds)
            for name, value in _spent(stack, sessions).items()
        }
        print(
            "   processor per turn: "
            + ", ".join(f"{name} {value:.2f} ms" for name, value in spent.items())
        )
        for terminal in sessions:
            await terminal.terminate()

    measure(body)


if __name__ == "__main__":
    main()
