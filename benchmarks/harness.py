"""Shared parts of the benchmarks: a stack to measure, percentiles, and the printed lines.

They measure and never assert.
"""

import argparse
import asyncio
import gc
import os
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from tests.support.mcp.client import Caller
from tests.support.stack import Stack, running_stack

PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which ``share`` (0..1) of ``values`` lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def in_ms(name: str, seconds: Sequence[float], target: str = "") -> str:
    """A line with count, median, p95, p99 and worst, in milliseconds."""
    p50, p95, p99 = (1000 * percentile(seconds, share) for share in (0.5, 0.95, 0.99))
    line = (
        f"{name:<28} n={len(seconds):<6} p50={p50:8.2f}  p95={p95:8.2f}  p99={p99:8.2f}  "
        f"max={1000 * max(seconds):8.2f} ms"
    )
    return f"{line}   target {target}" if target else line


def machine() -> str:
    """Describe the machine: figures of different or loaded machines cannot be compared."""
    load = os.getloadavg()
    model = next(
        (
            line.split(":")[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if "model name" in line
        ),
        "unknown",
    )
    return f"{os.cpu_count()} cores, {model}, load {load[0]:.1f}"


def mean(values: Sequence[float]) -> float:
    """Return the mean, or 0 without values."""
    return statistics.fmean(values) if values else 0.0


def arguments(description: str, **defaults: float) -> argparse.Namespace:
    """Parse the options of a benchmark: one for each default, of the default's type."""
    parser = argparse.ArgumentParser(description=description)
    for name, default in defaults.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=type(default), default=default)
    return parser.parse_args()


def measure(body: Callable[[Stack, Caller], Awaitable[None]]) -> None:
    """Run ``body`` against a fresh server and daemon, with one MCP client connection."""
    with running_stack() as stack:
        print(machine())
        # The caller's time is part of every figure, so the garbage collector must not walk its
        # modules again and again.
        gc.collect()
        gc.freeze()

        async def run() -> None:
            async with stack.caller() as caller:
                await body(stack, caller)

        asyncio.run(run())
