"""W1: measure a trivial command from its start to its result, on a PTY and on pipes.

``python -m benchmarks.start``
"""

import time

from benchmarks.harness import arguments, in_ms, measure
from tests.support.mcp.client import Caller
from tests.support.stack import Stack

_WARM_UP = 5


def main() -> None:
    """Print the time from the call to its result, for two commands with each tool."""
    options = arguments(main.__doc__ or "", runs=200)

    async def body(_: Stack, caller: Caller) -> None:
        for tool, end, target in (
            ("start_interactive_command", "state", 30),
            ("execute_command", "end_reason", 20),
        ):
            for command in ("true", "echo hi"):
                seconds = []
                for _run in range(options.runs + _WARM_UP):
                    before = time.perf_counter()
                    result = await caller.call(tool, command=command)
                    seconds.append(time.perf_counter() - before)
                    if result[end] != "exited":
                        raise SystemExit(f"{command} did not end: {result}")
                print(in_ms(f"W1 {tool[:7]} {command}", seconds[_WARM_UP:], f"p50 <= {target}"))

    measure(body)


if __name__ == "__main__":
    main()
