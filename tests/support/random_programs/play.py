"""Plays random programs in sessions of real holders, and judges every claim by their own clock."""

import asyncio
import json
import shlex
import sys
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from controller_client.protocol.messages import InteractiveOutput, TerminalReport
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.processes import all_pids, describe
from tests.support.random_programs.plans import Plan, simpler

PATIENCE_SECONDS: Final = 20.0
_WORK_SECONDS: Final = 90.0
SESSIONS: Final = 8
_MOST_PER_SESSION: Final = 100
_TRIES: Final = 3
_REDUCTION_SECONDS: Final = 60.0
_PARTS: Final = Path(__file__).parents[2] / "programs/fixtures/clocked/random_parts.py"


@dataclass
class Outcome:
    """The claims about one program: the early ones, and the evidence of the right one."""

    plan: Plan
    early: list[str] = field(default_factory=list)
    right: str = ""
    seconds: float = 0.0
    """The time from the begin of the last wait to the claim."""

    @property
    def is_disproved(self) -> bool:
        """True if a claim with evidence ``kernel`` was early."""
        return "kernel" in self.early

    @property
    def is_missed(self) -> bool:
        """True if nothing was ever claimed about the program."""
        return not self.right and not self.early


class Log:
    """The programs' own record: when each began, and when it waited for input alone."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def waits_at(self, number: int) -> float | None:
        """Return when a program began its last wait, in monotonic seconds."""
        return self._time(f"{number} waits ")

    def has_ended(self, number: int) -> bool:
        """Return whether a program is over."""
        return self._time(f"{number} ended ") is not None

    def standing(self) -> list[str]:
        """Return the call in which each thread of the programs stands, for a failure message."""
        found = []
        for pid in all_pids():
            with suppress(OSError):
                if Path(f"/proc/{pid}/cwd").readlink() == self._path.parent:
                    calls = Path(f"/proc/{pid}/task").glob("*/syscall")
                    found += [f"{describe(pid)} in {call.read_text().strip()}" for call in calls]
        return found

    def _time(self, begin: str) -> float | None:
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        problem = next((line for line in lines if line.startswith("error")), None)
        assert problem is None, problem
        found = next((line for line in lines if line.startswith(begin)), None)
        return int(found.split()[2]) / 1e9 if found else None


class Session:
    """One session that runs plans one after the other."""

    def __init__(self, conversation: Conversation, log: Log) -> None:
        self._conversation = conversation
        self._log = log
        self._judged = 0
        self._inputs = 0

    async def judge(self, number: int, plan: Plan) -> Outcome:
        """Watch one program until it is claimed to wait for input, then end it."""
        outcome = Outcome(plan)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not outcome.right and (left := deadline - time.monotonic()) > 0:
            claim = await self._claim(left)
            now, waits_at = time.monotonic(), self._log.waits_at(number)
            if claim is None:
                break
            if waits_at is None or now < waits_at:
                outcome.early.append(claim.evidence or "")
                await self._until_it_waits(number, plan)
                # The same claim may stand again now, and is not told twice.
                break
            outcome.right, outcome.seconds = claim.evidence or "", now - waits_at
        await self._until_it_waits(number, plan)
        self._inputs += 1
        await self._conversation.type(b"\n")
        return outcome

    async def _claim(self, seconds: float) -> TerminalReport | None:
        try:
            claim: TerminalReport = await self._conversation.until(self._news, "a claim", seconds)
        except AssertionError:
            return None
        return claim

    def _news(self) -> TerminalReport | None:
        received = self._conversation.received
        while self._judged < len(received):
            message = received[self._judged]
            self._judged += 1
            report = message.terminal if isinstance(message, InteractiveOutput) else None
            if report and report.state == "awaiting_input" and report.input_seq >= self._inputs:
                return report
        return None

    async def _until_it_waits(self, number: int, plan: Plan) -> None:
        deadline = time.monotonic() + _WORK_SECONDS
        while self._log.waits_at(number) is None:
            assert time.monotonic() < deadline, (
                f"does not come to its last wait: {plan}; {self._log.standing()}"
            )
            await asyncio.sleep(0.01)


async def play(host: HolderHost, plans: list[Plan], directory: Path) -> list[Outcome]:
    """Play plans one after the other in one session."""
    await asyncio.to_thread(_write, directory, plans)
    command = shlex.join([sys.executable, str(_PARTS), "plans", "log"])
    conversation = await host.run(command, cwd=str(directory))
    session = Session(conversation, Log(directory / "log"))
    outcomes = [await session.judge(number, plan) for number, plan in enumerate(plans)]
    await conversation.done()
    return outcomes


def _write(directory: Path, plans: list[Plan]) -> None:
    directory.mkdir()
    (directory / "plans").write_text("".join(f"{json.dumps(plan)}\n" for plan in plans))


async def play_all(plans: list[Plan], sessions: int = SESSIONS) -> list[Outcome]:
    """Play plans in several sessions at once."""
    size = min(_MOST_PER_SESSION, -(-len(plans) // sessions))
    batches = [plans[at : at + size] for at in range(0, len(plans), size)]
    with tempfile.TemporaryDirectory(prefix="holdline-random-") as root:
        limit = asyncio.Semaphore(sessions)
        async with holder_host(Path(root) / "state") as host:

            async def one(number: int, batch: list[Plan]) -> list[Outcome]:
                async with limit:
                    return await play(host, batch, Path(root) / str(number))

            found = await asyncio.gather(*(one(*each) for each in enumerate(batches)))
    return [outcome for batch in found for outcome in batch]


def disproved(outcomes: Iterable[Outcome]) -> list[Plan]:
    """Return the plans of programs about which a claim with evidence ``kernel`` was early."""
    return [outcome.plan for outcome in outcomes if outcome.is_disproved]


async def reduced(plan: Plan) -> Plan:
    """Return the plan without the parts that an early claim does not need."""
    deadline = time.monotonic() + _REDUCTION_SECONDS
    left = simpler(plan)
    while (candidate := next(left, None)) and time.monotonic() < deadline:
        if disproved(await play_all([candidate] * _TRIES)):
            plan, left = candidate, simpler(candidate)
    return plan
