"""The faults as they are done: each begins, lasts, and is undone, by signals and by proxies."""

import asyncio
import signal
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from chaos.faults.kinds import KINDS
from chaos.faults.schedule import Fault
from chaos.history import History
from chaos.plant import processes
from chaos.plant.link import Link
from chaos.plant.processes import Process
from chaos.plant.product import Product

_SLOW_BYTES_PER_SECOND: Final = 50_000.0
_LOST_SHARE: Final = 0.4


class Harm:
    """The things that a fault may touch, and the place where it is written down."""

    def __init__(self, product: Product, history: History) -> None:
        self.product = product
        self.history = history

    def server(self, fault: Fault) -> Process:
        """The server process that the fault is about."""
        return self.product.servers[fault.choice % len(self.product.servers)]

    def note(self, fault: Fault, state: str, **what: object) -> None:
        """Write down what became of a fault."""
        self.history.note(
            "fault", number=fault.number, fault=fault.kind, state=state, lasts=fault.seconds, **what
        )

    @asynccontextmanager
    async def lasting(self, fault: Fault, **what: object) -> AsyncIterator[None]:
        """The time of a fault: it was done before, and is undone after the block."""
        self.note(fault, "begin", **what)
        try:
            yield
        finally:
            self.note(fault, "end")

    async def start(self, fault: Fault, process: Process) -> None:
        """Start a process again, and write down how long it took until it was ready."""
        if process is self.product.daemon:
            ready = await self.product.start_daemon()
        else:
            ready = await self.product.start_server(process)
        self.note(fault, "ready", process=process.name, seconds=round(ready, 2))


Act = Callable[[Harm, Fault], Awaitable[None]]


async def _ended(harm: Harm, fault: Fault, process: Process, number: signal.Signals) -> None:
    async with harm.lasting(fault, process=process.name):
        await process.end(number)
        await asyncio.sleep(fault.seconds)
        process.start()
    await harm.start(fault, process)


async def _server_kill(harm: Harm, fault: Fault) -> None:
    await _ended(harm, fault, harm.server(fault), signal.SIGKILL)


async def _server_term(harm: Harm, fault: Fault) -> None:
    await _ended(harm, fault, harm.server(fault), signal.SIGTERM)


async def _daemon_kill(harm: Harm, fault: Fault) -> None:
    await _ended(harm, fault, harm.product.daemon, signal.SIGKILL)


async def _daemon_term(harm: Harm, fault: Fault) -> None:
    await _ended(harm, fault, harm.product.daemon, signal.SIGTERM)


async def _stopped(harm: Harm, fault: Fault, pids: list[int]) -> None:
    async with harm.lasting(fault, pids=pids):
        processes.signal_all(pids, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            processes.signal_all(pids, signal.SIGCONT)


async def _server_stop(harm: Harm, fault: Fault) -> None:
    pid = harm.server(fault).pid
    await _stopped(harm, fault, [] if pid is None else [pid])


async def _daemon_stop(harm: Harm, fault: Fault) -> None:
    pid = harm.product.daemon.pid
    await _stopped(harm, fault, [] if pid is None else [pid])


def _holder(harm: Harm, fault: Fault) -> list[int]:
    """A holder with a session, chosen by the fault; none if there is none."""
    holders = [pid for pid in sorted(harm.product.holders()) if harm.product.sessions_of(pid)]
    return [holders[fault.choice % len(holders)]] if holders else []


async def _holder_stop(harm: Harm, fault: Fault) -> None:
    await _stopped(harm, fault, await asyncio.to_thread(_holder, harm, fault))


async def _holder_kill(harm: Harm, fault: Fault) -> None:
    holders = await asyncio.to_thread(_holder, harm, fault)
    victims = [session for pid in holders for session in harm.product.sessions_of(pid)]
    async with harm.lasting(fault, pids=holders, victims=victims):
        processes.signal_all(holders, signal.SIGKILL)


async def _fork_server_kill(harm: Harm, fault: Fault) -> None:
    pids = await asyncio.to_thread(harm.product.fork_servers)
    async with harm.lasting(fault, pids=pids):
        processes.signal_all(pids, signal.SIGKILL)


async def _cut(harm: Harm, fault: Fault, link: Link) -> None:
    async with harm.lasting(fault):
        link.cut()


async def _stall(harm: Harm, fault: Fault, link: Link) -> None:
    async with harm.lasting(fault):
        link.hold()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            link.resume()


async def _link_cut(harm: Harm, fault: Fault) -> None:
    await _cut(harm, fault, harm.product.link)


async def _front_cut(harm: Harm, fault: Fault) -> None:
    await _cut(harm, fault, harm.product.front)


async def _link_stall(harm: Harm, fault: Fault) -> None:
    await _stall(harm, fault, harm.product.link)


async def _front_stall(harm: Harm, fault: Fault) -> None:
    await _stall(harm, fault, harm.product.front)


async def _link_half_open(harm: Harm, fault: Fault) -> None:
    async with harm.lasting(fault):
        harm.product.link.forget()
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            harm.product.link.remember()


async def _link_slow(harm: Harm, fault: Fault) -> None:
    async with harm.lasting(fault):
        harm.product.link.bytes_per_second = _SLOW_BYTES_PER_SECOND
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            harm.product.link.bytes_per_second = None


async def _front_lossy(harm: Harm, fault: Fault) -> None:
    async with harm.lasting(fault):
        harm.product.front.lost_replies = _LOST_SHARE
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            harm.product.front.lost_replies = 0.0


async def _everything_kill(harm: Harm, fault: Fault) -> None:
    everything = [harm.product.daemon, *harm.product.servers]
    async with harm.lasting(fault, process="everything"):
        for process in everything:
            process.send(signal.SIGKILL)
        await asyncio.gather(*(process.end(signal.SIGKILL) for process in everything))
        await asyncio.sleep(fault.seconds)
        for process in everything:
            process.start()
    await asyncio.gather(*(harm.start(fault, process) for process in everything))


ACTS: Final[dict[str, Act]] = {
    "server_kill": _server_kill,
    "server_term": _server_term,
    "server_stop": _server_stop,
    "daemon_kill": _daemon_kill,
    "daemon_term": _daemon_term,
    "daemon_stop": _daemon_stop,
    "fork_server_kill": _fork_server_kill,
    "holder_kill": _holder_kill,
    "holder_stop": _holder_stop,
    "link_cut": _link_cut,
    "link_stall": _link_stall,
    "link_half_open": _link_half_open,
    "link_slow": _link_slow,
    "front_cut": _front_cut,
    "front_stall": _front_stall,
    "front_lossy": _front_lossy,
    "everything_kill": _everything_kill,
}


async def carry_out(harm: Harm, faults: list[Fault]) -> None:
    """Do each fault at its time, and return when all are over."""
    began = time.monotonic()
    # A start that takes long makes the next fault of its target late.
    targets: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def one(fault: Fault) -> None:
        await asyncio.sleep(max(0.0, began + fault.at - time.monotonic()))
        async with AsyncExitStack() as held:
            for target in sorted(KINDS[fault.kind].targets):
                await held.enter_async_context(targets[target])
            await ACTS[fault.kind](harm, fault)

    async with asyncio.TaskGroup() as group:
        for fault in faults:
            group.create_task(one(fault))
