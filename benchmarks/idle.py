"""W6: measure the cost of idle sessions. ``python -m benchmarks.idle``"""

import asyncio
import time

from benchmarks.harness import arguments, mean, measure
from benchmarks.turn import PROGRAMS
from tests.support.mcp.client import Caller
from tests.support.processes import cpu_seconds, proportional_bytes, resident_bytes
from tests.support.stack import Stack

_MIB = 1024 * 1024


def main() -> None:
    """Print processor share of holders, daemon and server, and memory per session."""
    options = arguments(main.__doc__ or "", sessions=100, settle_seconds=15.0, seconds=20.0)

    async def body(stack: Stack, caller: Caller) -> None:
        command = PROGRAMS["shell read"][0]
        sessions = [
            await caller.start(command, lifetime_seconds=280) for _ in range(options.sessions)
        ]
        holders = [pid for session in sessions if (pid := stack.holder_pid(session.session_id))]
        await asyncio.sleep(options.settle_seconds)
        assert stack.server is not None
        groups = {"holders": holders, "daemon": stack.daemon_pids(), "server": [stack.server.pid]}
        before, started = (
            {name: sum(map(cpu_seconds, pids)) for name, pids in groups.items()},
            time.monotonic(),
        )
        await asyncio.sleep(options.seconds)
        elapsed = time.monotonic() - started
        for name, pids in groups.items():
            share = 100 * (sum(map(cpu_seconds, pids)) - before[name]) / elapsed
            print(
                f"W6 {name:<8} {len(pids):>4} processes   {share:6.2f} % of a core"
                + ("   target <= 3 %" if name == "holders" else "")
            )
        pss = [proportional_bytes(pid) / _MIB for pid in holders]
        print(
            f"W6 holder memory: PSS mean {mean(pss):.2f}, max {max(pss):.2f} MiB   target <= 8 MB "
            "each"
        )
        print(f"W6 server RSS {resident_bytes(stack.server.pid) / _MIB:.1f} MiB")
        for session in sessions:
            await session.terminate()

    measure(body)


if __name__ == "__main__":
    main()
