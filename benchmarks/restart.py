"""Measure one server process with many controllers, few of them busy, and its restart.

``python -m benchmarks.restart``
"""

import argparse
import asyncio
import collections
import signal
import time

from benchmarks.harness import in_ms, machine
from benchmarks.load import Crowd, Sessions, crowd, measure_rate, warm_up
from tests.support.processes import cpu_seconds, resident_bytes

_KIB = 1024


async def _measure(hosts: Crowd, options: argparse.Namespace) -> Sessions:
    await warm_up(hosts)
    base = sum(map(resident_bytes, hosts.server_pids()))
    await asyncio.to_thread(hosts.connect)
    await asyncio.sleep(options.settle_seconds)
    each = (sum(map(resident_bytes, hosts.server_pids())) - base) / options.controllers / _KIB
    print(f"{options.controllers} connected: {each:.0f} KiB of server memory each   target <= 150")
    before, began = sum(map(cpu_seconds, hosts.server_pids())), time.monotonic()
    await asyncio.sleep(options.seconds)
    share = 100 * (sum(map(cpu_seconds, hosts.server_pids())) - before) / (time.monotonic() - began)
    print(f"   all idle: {share:.1f} % of a core")
    active = hosts.names[: max(1, int(options.active * options.controllers))]
    sessions = Sessions(hosts, active)
    await sessions.start()
    await sessions.take_turns(len(active) / 2, 3)
    await measure_rate(hosts, sessions, options.rate or len(active), options.seconds)
    return sessions


async def _restart(hosts: Crowd, sessions: Sessions, kind: str) -> None:
    """Restart the server once and print how its hosts come back."""
    earlier = len(hosts.welcomes())
    number = signal.SIGTERM if kind == "graceful" else signal.SIGKILL
    process = hosts.cluster.workers[0]
    assert process is not None
    began = time.monotonic()
    process.send_signal(number)
    await asyncio.to_thread(process.wait)
    stopped = time.monotonic()
    sessions.close()
    await asyncio.to_thread(hosts.cluster.start_worker, 0)
    started = time.monotonic()
    spent = cpu_seconds(hosts.server_pids()[0])
    await asyncio.to_thread(hosts.await_connected, earlier)
    moments = hosts.welcomes()[earlier:]
    per_second = collections.Counter(int(moment - started) for moment in moments)
    print(
        f"{kind} restart: stopped after {stopped - began:.1f} s, accepts again after "
        f"{started - stopped:.1f} s more"
    )
    first, last = moments[0] - started, moments[-1] - started
    print(
        f"   welcomed again {first:.1f} to {last:.1f} s after that, at most "
        f"{max(per_second.values())} in a second"
    )
    print(
        f"   processor {cpu_seconds(hosts.server_pids()[0]) - spent:.1f} s meanwhile; "
        f"{len(moments) - hosts.count} WELCOMEs more than hosts"
    )
    await sessions.take_turns(20, 5)
    print(in_ms("   turns after it", sessions.seconds) + f"   {sessions.failed} failed")


async def _all(hosts: Crowd, options: argparse.Namespace) -> None:
    sessions = await _measure(hosts, options)
    for kind in ("graceful", "killed"):
        await _restart(hosts, sessions, kind)
    sessions.close()


def main() -> None:
    """Print the cost of idle controllers, the turns of busy ones, and two restarts."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--controllers", type=int, default=1000)
    parser.add_argument("--active", type=float, default=0.05)
    parser.add_argument(
        "--rate",
        type=float,
        default=0.0,
        help="turns per second in all; 0: one of each active controller",
    )
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--settle-seconds", type=float, default=5.0)
    options = parser.parse_args()
    print(machine())
    with crowd(options.controllers, 1, 20) as hosts:
        asyncio.run(_all(hosts, options))


if __name__ == "__main__":
    main()
