"""Count how often the watcher claims "waiting" too early, with and without each condition.

``python -m benchmarks.terminal_state_races [--turns N] [--only NAME] [--all-conditions-only]``:
each program takes turns whose answers are known beforehand; a claim before the whole answer was
read is early. Then again with one condition left out at a time.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.harness import machine, percentile
from controller_client.terminal_state.decision import Requirement
from controller_client.terminal_state.kernel.occupation import Company
from controller_client.terminal_state.kernel.snapshot import Snapshot
from controller_client.terminal_state.watcher import TerminalWatcher
from tests.support.hosts.bare_terminal import BareTerminal

CONDITIONS = ("read", "ran", "drained", "slept", "rest")
"""The input is read; the waiter ran since; the master is empty; the waiter slept through the look;
so does the rest of the foreground.
"""

WORKER = """
import random, sys, time
for line in sys.stdin:
    time.sleep(random.random() * 0.002)
    sys.stdout.write("a" + line[:3]); sys.stdout.flush()
    time.sleep(random.random() * 0.0005)
    sys.stdout.write(line[3:]); sys.stdout.flush()
"""


HAND_OVER = """
import os, queue, random, threading, time
lines = queue.SimpleQueue()
def answer():
    while True:
        line = lines.get()
        if random.random() < 0.5:
            time.sleep(random.random() * 0.002)
        else:
            os.waitpid(os.spawnlp(os.P_NOWAIT, "true", "true"), 0)
        os.write(1, b"a" + line)
threading.Thread(target=answer, daemon=True).start()
while True:
    lines.put(os.read(0, 4096))
"""


LOOP = """
import asyncio, os, random, sys, time
async def main():
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        way = random.random()
        if way < 0.2:
            await (await asyncio.create_subprocess_exec("true")).wait()
        elif way < 0.6:
            await loop.run_in_executor(None, time.sleep, random.random() * 0.002)
        else:
            await asyncio.sleep(random.random() * 0.002)
        os.write(1, b"a" + line)
asyncio.run(main())
"""

NODE_LOOP = """
const fs = require('fs')
const crypto = require('crypto')
process.stdin.on('data', line => {
    const answer = () => fs.writeSync(1, 'a' + line)
    const way = Math.random()
    if (way < 0.2) require('child_process').execFile('true', answer)
    else if (way < 0.4) crypto.pbkdf2('a', 'b', 1000, 64, 'sha512', answer)
    else if (way < 0.6) fs.readFile('/etc/services', answer)
    else setTimeout(answer, Math.random() * 2)
})
"""


@dataclass(frozen=True)
class Program:
    """One kind of turn.

    ``answer`` is what the output must hold at the claim, ``ending`` how it must end.
    """

    argv: Sequence[str]
    line: str
    answer: str
    ending: str = ""
    seconds_weight: float = 1.0


PYTHON = sys.executable
PROGRAMS = {
    "cat": Program(["cat"], "line-{0}\n", "line-{0}\r\nline-{0}\r\n", "\r\n"),
    "python": Program([PYTHON, "-q"], "{0}+1000000\n", "\n{1}\r\n", ">>> "),
    "bash builtin": Program(["bash", "--norc"], "echo $(({0}+1000000))\n", "\n{1}\r\n", "$ "),
    "bash program": Program(
        ["bash", "--norc"], "/bin/echo $(({0}+1000000))\n", "\n{1}\r\n", "$ ", 0.1
    ),
    "dash": Program(["dash", "-i"], "echo $(({0}+1000000))\n", "\n{1}\r\n", "$ "),
    "two writes": Program([PYTHON, "-c", WORKER], "line-{0}\n", "\naline-{0}\r\n", "\r\n", 0.2),
    "another thread": Program(
        [PYTHON, "-c", HAND_OVER], "line-{0}\n", "\naline-{0}\r\n", "\r\n", 0.05
    ),
    "event loop": Program([PYTHON, "-c", LOOP], "line-{0}\n", "\naline-{0}\r\n", "\r\n", 0.05),
    "loop of node": Program(
        ["node", "-e", NODE_LOOP], "line-{0}\n", "\naline-{0}\r\n", "\r\n", 0.05
    ),
    "behind a pipe": Program(
        ["bash", "-c", f"cat | {PYTHON} -u -c '{WORKER}'"],
        "line-{0}\n",
        "\naline-{0}\r\n",
        "\r\n",
        0.005,
    ),
    "behind script": Program(
        ["script", "-qc", "cat", "/dev/null"], "line-{0}\n", "line-{0}\r\nline-{0}\r\n", "\r\n", 0.3
    ),
    "behind sudo": Program(["sudo", "cat"], "line-{0}\n", "line-{0}\r\nline-{0}\r\n", "\r\n", 0.3),
}


class AblatedWatcher(TerminalWatcher):
    """A watcher that leaves one of its conditions out."""

    omitted: str | None = None

    def _has_run_since_input(self, snapshot: Snapshot, now: float) -> bool:
        return self.omitted == "ran" or super()._has_run_since_input(snapshot, now)

    def _current_snapshot(self, now: float, quiet: float) -> Snapshot:
        snapshot = super()._current_snapshot(now, quiet)
        if self.omitted == "read":
            snapshot.has_unread = False
        if self.omitted == "rest":
            snapshot.is_busy = snapshot.has_workers = False
            for waiter in snapshot.waiters:
                waiter.company = Company()
        return snapshot

    def _confirm(
        self, snapshot: Snapshot, needed: Requirement, drain: Callable[[], bool], quiet: float
    ):
        if self.omitted == "slept":
            snapshot.concerned = []
        return super()._confirm(
            snapshot, needed, (lambda: False) if self.omitted == "drained" else drain, quiet
        )


class AblatedTerminal(BareTerminal):
    """A terminal whose watcher leaves a condition out."""

    def __init__(self, argv: Sequence[str], omitted: str | None) -> None:
        self._omitted = omitted
        super().__init__(argv)

    def new_watcher(self) -> TerminalWatcher:
        """A watcher on this terminal."""
        watcher = AblatedWatcher(self.master, self.process.pid)
        watcher.omitted = self._omitted
        return watcher


def is_whole(program: Program, turn: int, output: bytes) -> bool:
    """Tell whether the output holds the whole answer of a turn."""
    text = output.decode("utf-8", "replace").replace("\x1b[?2004h", "").replace("# ", "$ ")
    return program.answer.format(turn, turn + 1000000) in text.replace(
        "\x1b[?2004l\r", ""
    ) and text.endswith(program.ending)


def take_turns(name: str, omitted: str | None, turns: int) -> None:
    """Run the turns of one program and print the counts."""
    program = PROGRAMS[name]
    count = max(20, int(turns * program.seconds_weight))
    early = unknown = 0
    seconds: list[float] = []
    with AblatedTerminal(program.argv, omitted) as terminal:
        terminal.wait(10)
        terminal.looks, terminal.look_seconds = 0, 0.0
        for turn in range(count):
            before = time.perf_counter()
            terminal.send(program.line.format(turn).encode())
            verdict = terminal.wait(5)
            seconds.append(time.perf_counter() - before)
            if not verdict.is_waiting:
                unknown += 1
            elif not is_whole(program, turn, bytes(terminal.output)):
                early += 1
                if omitted is None:
                    print("   early:", turn, verdict, bytes(terminal.output)[-200:])
                _let_it_finish(terminal, program, turn)
        looks = terminal.looks / count
        per_look = 1e6 * terminal.look_seconds / terminal.looks
    p50, p95 = (1000 * percentile(seconds, share) for share in (0.5, 0.95))
    left_out = f"without {omitted}" if omitted else "all conditions"
    print(
        f"{name:<14} {left_out:<16} n={count:<7} early={early:<6} ({100 * early / count:.3f} %)  "
        f"unknown={unknown}"
        f"  p50={p50:.3f} p95={p95:.3f} ms  {looks:.1f} looks of {per_look:.0f} us",
        flush=True,
    )


def _let_it_finish(terminal: BareTerminal, program: Program, turn: int) -> None:
    deadline = time.monotonic() + 2
    while not is_whole(program, turn, bytes(terminal.output)) and time.monotonic() < deadline:
        terminal.step(0.001)


def main() -> None:
    """Run every program with all conditions, then with each left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=30_000)
    parser.add_argument("--only", choices=sorted(PROGRAMS))
    parser.add_argument("--all-conditions-only", action="store_true")
    options = parser.parse_args()
    print(machine())
    for name in [options.only] if options.only else PROGRAMS:
        take_turns(name, None, options.turns)
        for omitted in () if options.all_conditions_only else CONDITIONS:
            take_turns(name, omitted, options.turns // 5)


if __name__ == "__main__":
    main()
