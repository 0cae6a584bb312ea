"""W4 on pipes: measure bulk output into the store. ``python -m benchmarks.pipes``"""

import time

from benchmarks.harness import PYTHON, arguments, measure
from tests.support.mcp.client import Caller
from tests.support.processes import resident_bytes, status_field
from tests.support.stack import Stack
from tests.support.waiting import await_until

_MB = 1e6
_BLOCK_BYTES = 65536
_WRITER = (
    "import os, sys; b = os.urandom({size}); [os.write({descriptor}, b) for _ in range({blocks})]"
)


def _peak_mb(pid: int) -> float:
    return int((status_field(pid, "VmHWM") or "0 kB").split()[0]) * 1024 / _MB


def main() -> None:
    """Print the rate of bulk output, the bytes that were lost, and the growth of memory.

    The time runs from the request of the first byte to the commit of the last.
    """
    options = arguments(main.__doc__ or "", megabytes=100.0, rounds=3)
    blocks = int(options.megabytes * _MB) // _BLOCK_BYTES

    async def body(stack: Stack, caller: Caller) -> None:
        assert stack.server is not None
        for _ in range(options.rounds):
            base = resident_bytes(stack.server.pid) / _MB
            writer = _WRITER.format(size=_BLOCK_BYTES, descriptor=1, blocks=blocks)
            started = await caller.call(
                "start_command", command=f"bash -c \"read x; {PYTHON} -c '{writer}'; read x\""
            )
            session_id, total = started["sessionId"], blocks * _BLOCK_BYTES
            holder = stack.holder_pid(session_id) or 0
            holder_base = _peak_mb(holder)
            before = time.perf_counter()
            await caller.call("write_input", sessionId=session_id, input="\n")

            def is_committed(session_id: str = session_id, total: int = total) -> bool:
                return bool(stack.database.session(session_id, "stdout_next_offset")[0] >= total)

            await await_until(is_committed, 250, "everything to be committed")
            rate = total / _MB / (time.perf_counter() - before)
            grown = resident_bytes(stack.server.pid) / _MB - base
            delivered, missing = stack.database.accounted_bytes(session_id)
            print(
                (
                    f"W4 pipes {rate:6.1f} MB/s   target >= 40   delivered {delivered}, in gaps "
                    f"{missing} bytes;"
                ),
                end=" ",
            )
            print(f"server {grown:+.1f} MB, holder {_peak_mb(holder) - holder_base:+.1f} MB")
            await caller.call("stop_command", sessionId=session_id)

    measure(body)


if __name__ == "__main__":
    main()
