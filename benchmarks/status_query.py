"""Measure queries of a job's output, at different offsets of 10 MiB.

``python -m benchmarks.status_query``
"""

import time

from benchmarks.harness import arguments, in_ms, measure
from tests.support.mcp.client import Caller
from tests.support.stack import Stack
from tests.support.waiting import await_until

_SIZE = 10 * 1024 * 1024
_SHOWN = 4096


def main() -> None:
    """Print the time of queries of the last 4 KiB of short and long outputs, and past their end."""
    options = arguments(main.__doc__ or "", runs=300)

    async def body(stack: Stack, caller: Caller) -> None:
        for size in (_SHOWN, _SIZE // 100, _SIZE):
            # Sessions get their output in the same small steps that a talkative program makes.
            command = f"yes 0123456789abcde | head -c {size}"
            token = (await caller.call("run_command", command=command, timeout=120))["token"]
            await await_until(
                lambda token=token: stack.database.state(token) == "EXITED", 120, "the job's end"
            )
            for name, offset, shown in (
                ("end - 4 KiB", size - _SHOWN, _SHOWN),
                ("past the end", size + 1, 0),
            ):
                seconds = []
                for _ in range(options.runs):
                    before = time.perf_counter()
                    answer = await caller.call(
                        "query_command_status", token=token, stdout_offset=offset
                    )
                    seconds.append(time.perf_counter() - before)
                    if (len(answer["stdout"]), answer["stdout_length"]) != (shown, size):
                        raise SystemExit(
                            f"a wrong answer: {len(answer['stdout'])} of {answer['stdout_length']}"
                        )
                print(in_ms(f"query of {size / 1024:.0f} KiB, {name}", seconds, "p50 <= 10"))

    measure(body)


if __name__ == "__main__":
    main()
