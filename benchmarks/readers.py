"""Background sessions that write without a pause, each with a reader of its own.

``python -m benchmarks.readers``

A line begins with the time it was written. A reader's wait ends with the reply; it began with its
call, or when the first line of the reply was written, if that was later. Without
``--think-seconds`` all readers ask again at once: then the waits tell how many reads the machine
can answer, and each reader queues behind all the others.
"""

import asyncio
import os
import random
import shlex
import time

from benchmarks import steady_writer
from benchmarks.harness import PYTHON, arguments, in_ms, measure
from benchmarks.steady_writer import STAMP
from tests.support.mcp.client import Caller
from tests.support.processes import cpu_seconds
from tests.support.stack import Stack

_WAIT_MS = 30_000


async def _read(caller: Caller, session_id: str, waits: list[float], think_seconds: float) -> int:
    """Read to the end, with a pause after each reply; return the number of bytes."""
    size = 0
    carried = ""
    while True:
        called = time.monotonic()
        answer = await caller.call("read_output", sessionId=session_id, timeout=_WAIT_MS)
        now = time.monotonic()
        text = answer["stdout"]
        size += len(text) + answer.get("lostBytes", 0)
        # The time stamp is that of the first line that began in this reply. Text before that line
        # is the rest of an earlier one.
        start = 0 if not carried or carried.endswith("\n") else text.find("\n") + 1
        stamp = text[start : start + STAMP]
        if len(stamp) == STAMP and stamp.isdigit():
            waits.append(now - max(called, int(stamp) / 1e9))
        carried = text[-1:] or carried
        if not answer["isActive"] and not answer["hasMore"]:
            return size
        if think_seconds:
            await asyncio.sleep(think_seconds * random.uniform(0.5, 1.5))


def main() -> None:
    """Print how long readers waited for bytes that existed, and whether they got them all."""
    options = arguments(
        main.__doc__ or "",
        sessions=32,
        megabytes_per_second=1.0,
        seconds=10.0,
        interval_seconds=0.05,
        callers=4,
        think_seconds=0.0,
    )
    rate = options.megabytes_per_second * 1e6
    command = shlex.join(
        [
            PYTHON,
            steady_writer.__file__,
            str(rate),
            str(options.seconds),
            str(options.interval_seconds),
        ]
    )

    async def body(stack: Stack, caller: Caller) -> None:
        waits: list[float] = []
        ids = [
            (await caller.call("start_command", command=command))["sessionId"]
            for _ in range(options.sessions)
        ]

        async def one_caller(number: int) -> int:
            async with stack.caller() as mine:
                return sum(
                    await asyncio.gather(
                        *(
                            _read(mine, session_id, waits, options.think_seconds)
                            for session_id in ids[number :: options.callers]
                        )
                    )
                )

        assert stack.server is not None
        parts = {
            "callers": [os.getpid()],
            "server": [stack.server.pid],
            "daemon": stack.daemon_pids(),
        }
        before, started = (
            {name: sum(map(cpu_seconds, pids)) for name, pids in parts.items()},
            time.monotonic(),
        )
        size = sum(await asyncio.gather(*(one_caller(number) for number in range(options.callers))))
        elapsed = time.monotonic() - started
        print(in_ms(f"{options.sessions} readers", waits, "p99 <= 100"))
        print(f"   {size / 1e6:.1f} MB read at {size / 1e6 / elapsed:.1f} MB/s")
        for name, pids in parts.items():
            print(
                f"   {name}: {100 * (sum(map(cpu_seconds, pids)) - before[name]) / elapsed:.0f} % "
                "of a core"
            )

    measure(body)


if __name__ == "__main__":
    main()
