"""W4: bulk output of ``seq`` through a PTY, against a bare read loop on a PTY in the same run.

``python -m benchmarks.bulk``
"""

import bisect
import os
import pty
import time

from benchmarks.harness import arguments, measure
from tests.support.mcp.client import Caller
from tests.support.processes import resident_bytes, status_field
from tests.support.stack import Stack
from tests.support.waiting import await_until

_MB = 1e6


def _bytes_of(last: int) -> int:
    return sum(
        (len(str(10**digits)) + 2) * (min(last, 10 ** (digits + 1) - 1) - 10**digits + 1)
        for digits in range(len(str(last)))
    )


def _raw_rate(last: int) -> float:
    """Bytes per second of a bare os.read loop."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("seq", ["seq", "1", str(last)])
    started, size = time.perf_counter(), 0
    try:
        while block := os.read(master, 65536):
            size += len(block)
    except OSError:  # EIO: the far end is closed
        pass
    elapsed = time.perf_counter() - started
    os.waitpid(pid, 0)
    os.close(master)
    return size / elapsed


def main() -> None:
    """Print both rates, their ratio, the lost bytes and the growth of memory."""
    options = arguments(main.__doc__ or "", megabytes=100.0, rounds=3)
    last = bisect.bisect_left(
        range(1, int(options.megabytes * _MB)), int(options.megabytes * _MB), key=_bytes_of
    )

    async def body(stack: Stack, caller: Caller) -> None:
        for _ in range(options.rounds):
            raw = _raw_rate(last)
            assert stack.server is not None
            base = resident_bytes(stack.server.pid)
            session = await caller.start(
                f"bash -c 'read x; seq 1 {last}; read x'", lifetime_seconds=280
            )
            holder = stack.holder_pid(session.session_id)
            started = time.perf_counter()
            await session.send("\n", wait_seconds=0, max_output_bytes=1024)
            total = _bytes_of(last) + 2

            def is_committed(session_id: str = session.session_id, total: int = total) -> bool:
                return bool(stack.database.session(session_id, "stdout_next_offset")[0] >= total)

            await await_until(is_committed, 250, "everything to be committed")
            rate = total / (time.perf_counter() - started)
            peak = int((status_field(holder or 0, "VmHWM") or "0 kB").split()[0]) / 1024
            growth = (resident_bytes(stack.server.pid) - base) / _MB
            delivered, missing = stack.database.accounted_bytes(session.session_id)
            await session.terminate()
            print(
                f"W4 raw {raw / _MB:6.1f} MB/s   Holdline {rate / _MB:6.1f} MB/s   ratio "
                f"{100 * rate / raw:5.1f} %   target >= 60 %"
            )
            print(
                f"   delivered {delivered}, in gaps {missing} bytes; server {growth:+.1f} MB, "
                f"holder peak {peak:.1f} MiB"
            )

    measure(body)


if __name__ == "__main__":
    main()
