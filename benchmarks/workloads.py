"""What is done to a side: one block of each workload, which returns its figures.

Times are seconds at the caller, from the call to its answer. ``<part> ms`` is processor time per
call of that part.
"""

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager

from benchmarks.harness import mean, percentile
from benchmarks.sides import SESSION, Side
from tests.support.mcp.light_client import LightCaller
from tests.support.processes import children_of, proportional_bytes

Figures = dict[str, float]
_READ_BYTES = 32 * 1024
_PAGE_BYTES = 256 * 1024


def percentiles(seconds: list[float]) -> Figures:
    """The percentiles of some times, in milliseconds."""
    return {
        name: 1000 * percentile(seconds, share)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))
    }


def per_call(side: Side, before: dict[str, float], calls: int) -> Figures:
    """The processor time of each part per call."""
    spent = side.spent()
    return {
        f"{part} ms": 1000 * max(0.0, spent[part] - before.get(part, 0.0)) / max(1, calls)
        for part in spent
    }


async def _series(side: Side, call: Callable[[int], Awaitable[None]], calls: int) -> Figures:
    """The same call again and again."""
    for number in range(3):
        await call(-1 - number)
    before, seconds = side.spent(), []
    for number in range(calls):
        began = time.perf_counter()
        await call(number)
        seconds.append(time.perf_counter() - began)
    return {**percentiles(seconds), **per_call(side, before, calls)}


@asynccontextmanager
async def _terminals(side: Side, count: int):
    """Sessions of the program of turns, each with a caller of its own."""
    callers = [side.caller() for _ in range(count)]
    gate = asyncio.Semaphore(10)

    async def start(caller: LightCaller) -> str:
        async with gate:
            answer = await caller.call(
                "start_interactive_command",
                command=SESSION,
                **({} if side.is_floor else {"lifetime_seconds": 280, "wait_seconds": 30}),
            )
        return str(answer["session_id"])

    sessions = await asyncio.gather(*map(start, callers))
    try:
        yield list(zip(callers, sessions, strict=True))
    finally:
        for caller, session in zip(callers, sessions, strict=True):
            await caller.call("send_command_input", session_id=session, terminate=True)
            caller.close()


async def _turn(caller: LightCaller, session: str, line: str) -> None:
    """One turn; its answer must be whole, and say that the program waits."""
    answer = await caller.call("send_command_input", session_id=session, input_text=line + "\n")
    if answer["state"] != "awaiting_input" or f"got {line}" not in answer["output"]:
        raise SystemExit(f"a wrong turn: {answer}")


async def cheapest(side: Side, calls: int) -> Figures:
    """W0: the list of the hosts, the cheapest call."""
    caller = side.caller()

    async def call(_: int) -> None:
        await caller.call("list_controllers")

    figures = await _series(side, call, calls)
    caller.close()
    return figures


async def listed(side: Side, calls: int) -> Figures:
    """``list_sessions(20)``, of 20 sessions at least."""
    caller = side.caller()
    while len((await caller.call("list_sessions", limit=20))["sessions"]) < 20:
        await caller.call("execute_command", command="true")

    async def call(_: int) -> None:
        await caller.call("list_sessions", limit=20)

    figures = await _series(side, call, calls)
    caller.close()
    return figures


async def command(side: Side, calls: int) -> Figures:
    """W1: ``true``, from the call to its result."""
    caller = side.caller()

    async def call(_: int) -> None:
        await caller.call("execute_command", command="true")

    figures = await _series(side, call, calls)
    caller.close()
    return figures


async def turns(side: Side, calls: int) -> Figures:
    """W2: turns of one session."""
    async with _terminals(side, 1) as [(caller, session)]:
        return await _series(side, lambda number: _turn(caller, session, f"w{number}"), calls)


async def crowd(side: Side, sessions: int, seconds: float) -> Figures:
    """W5: sessions that all take turns at once."""
    async with _terminals(side, sessions) as pairs:
        times: list[float] = []

        async def take(caller: LightCaller, session: str, until: float) -> None:
            number = 0
            while time.perf_counter() < until:
                began = time.perf_counter()
                number += 1
                await _turn(caller, session, f"w{number}")
                times.append(time.perf_counter() - began)

        async def all_take(for_seconds: float) -> float:
            began = time.perf_counter()
            await asyncio.gather(*(take(*pair, began + for_seconds) for pair in pairs))
            return time.perf_counter() - began

        await all_take(min(1.0, seconds / 2))
        times.clear()
        before = side.spent()
        elapsed = await all_take(seconds)
        return {
            "turns/s": len(times) / elapsed,
            **percentiles(times),
            **per_call(side, before, len(times)),
        }


async def readers(side: Side, count: int, seconds: float) -> Figures:
    """Readers of 32 KB at once, anywhere in the output of one session."""
    callers = [side.caller() for _ in range(count)]
    started = await callers[0].call(
        "start_interactive_command", command="seq 1 1200000", wait_seconds=30
    )
    session, found = started["session_id"], {"state": "running", "total_bytes": 0}
    while found["state"] != "exited":
        found = await callers[0].call(
            "read_session_output", session_id=session, offset=2**40, max_bytes=1024, wait_seconds=5
        )
    total = found["total_bytes"]
    times: list[float] = []
    before, began = side.spent(), time.perf_counter()

    async def read(number: int, caller: LightCaller) -> None:
        at = number * 7919 * 1013
        while time.perf_counter() < began + seconds:
            at = (at + 104_729 * 17) % (total - _READ_BYTES)
            asked = time.perf_counter()
            page = await caller.call(
                "read_session_output", session_id=session, offset=at, max_bytes=_READ_BYTES
            )
            times.append(time.perf_counter() - asked)
            assert page["next_offset"] > at + _READ_BYTES // 2, page
        caller.close()

    await asyncio.gather(*(read(number, caller) for number, caller in enumerate(callers)))
    elapsed = time.perf_counter() - began
    return {
        "reads/s": len(times) / elapsed,
        **percentiles(times),
        **per_call(side, before, len(times)),
    }


async def bulk(side: Side, last: int) -> Figures:
    """W4: ``seq`` through a terminal until the caller has every byte, beside a bare PTY."""
    raw = await asyncio.to_thread(_raw_rate, last)
    caller = side.caller()
    began = time.perf_counter()
    started = await caller.call(
        "start_interactive_command", command=f"seq 1 {last}", wait_seconds=0, lifetime_seconds=280
    )
    offset, is_over = 0, False
    while not is_over:
        page = await caller.call(
            "read_session_output",
            session_id=started["session_id"],
            offset=offset,
            max_bytes=_PAGE_BYTES,
            view="raw",
            wait_seconds=5,
        )
        is_over = page["state"] == "exited" and page["next_offset"] == offset
        offset = page["next_offset"]
        if page["gaps"]:
            raise SystemExit(f"bytes are lost: {page['gaps']}")
    rate = offset / (time.perf_counter() - began)
    caller.close()
    return {"MB/s": rate / 1e6, "raw MB/s": raw / 1e6, "share %": 100 * rate / raw}


def _raw_rate(last: int) -> float:
    """Bytes per second of a bare os.read loop."""
    pid, master = pty.fork()
    if pid == 0:
        os.execvp("seq", ["seq", "1", str(last)])
    began, size = time.perf_counter(), 0
    try:
        while block := os.read(master, 65536):
            size += len(block)
    except OSError:  # EIO: the far end is closed
        pass
    rate = size / (time.perf_counter() - began)
    os.waitpid(pid, 0)
    os.close(master)
    return rate


async def idle(side: Side, sessions: int, seconds: float) -> Figures:
    """W6: sessions that wait. PSS is that of a holder beside a bare fork of this interpreter."""
    async with _terminals(side, sessions):
        await asyncio.sleep(min(15.0, seconds))
        before, began = side.spent(), time.perf_counter()
        await asyncio.sleep(seconds)
        elapsed, spent = time.perf_counter() - began, side.spent()
        shares = {
            f"{part} %": 100 * (spent[part] - before.get(part, 0.0)) / elapsed for part in spent
        }
        memory = mean([proportional_bytes(pid) / 1e6 for pid in side.holders()])
    bare = await asyncio.to_thread(_bare_fork_megabytes, sessions)
    return {**shares, "all %": sum(shares.values()), "PSS MB": memory, "bare fork MB": bare}


_FORKS = """
import os, sys
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        os._exit(len(sys.stdin.read()))
print(flush=True)
sys.stdin.read()
"""


def _bare_fork_megabytes(count: int) -> float:
    """PSS of a child among ``count`` that an interpreter without any module of ours forked."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _FORKS, str(count)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    found = mean([proportional_bytes(pid) / 1e6 for pid in children_of(process.pid)])
    process.communicate()
    return found
