"""A process with a clock of its own sees it set, and its threads wait as without it."""

import os
import sys
from pathlib import Path

from chaos.plant.clocks import Clock, make_library
from chaos.plant.processes import Command, run

_TOLD = """
import time
print(int(time.time()), int(time.clock_gettime(time.CLOCK_MONOTONIC)))
"""
_BUSY = """
import threading, time
is_over = False
def work():
    while not is_over:
        pass
for _ in range(2):
    threading.Thread(target=work).start()
for _ in range(20):
    time.sleep(0.01)
is_over = True
print("done")
"""


async def _printed(directory: Path, program: str, variables: dict[str, str]) -> str:
    command = [sys.executable, "-c", program]
    return await run(Command(command, {**os.environ, **variables}, directory), 60.0)


async def test_a_clock_is_set_and_the_monotonic_one_is_left_alone(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    variables = clock.variables(await make_library(tmp_path))
    before = (await _printed(tmp_path, _TOLD, {})).split()
    clock.set(-3600)
    wall, monotonic = (await _printed(tmp_path, _TOLD, variables)).split()
    clock.set(0)
    after = (await _printed(tmp_path, _TOLD, variables)).split()
    assert int(before[0]) - 3600 <= int(wall) <= int(after[0]) - 3600
    assert int(before[1]) <= int(monotonic) <= int(after[1])


async def test_busy_threads_share_the_interpreter_as_ever(tmp_path: Path) -> None:
    clock = Clock(tmp_path / "clock")
    variables = clock.variables(await make_library(tmp_path))
    assert await _printed(tmp_path, _BUSY, variables) == "done\n"
