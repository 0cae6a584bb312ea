"""Faults by signals: processes are killed, ended, and stopped for a while."""

import asyncio
import signal
from collections.abc import Callable
from typing import Final

from chaos.faults.harm import Act, Harm
from chaos.faults.schedule import Fault
from chaos.plant import processes
from chaos.plant.processes import Process

# The slices of time in which a slow process stands still, and runs.
_STOPPED_SECONDS: Final = 0.18
_RUNNING_SECONDS: Final = 0.02

Chosen = Callable[[Harm, Fault], Process]


def chosen_server(harm: Harm, fault: Fault) -> Process:
    """The server process that the fault is about."""
    return harm.server(fault)


def daemon(harm: Harm, _fault: Fault) -> Process:
    """The daemon of the run, the only one there is."""
    return harm.product.daemon


def backend(name: str) -> Chosen:
    """The process of PostgreSQL or Redis, by its name."""
    return lambda harm, _fault: harm.product.backends[name]


def ending(chosen: Chosen, number: signal.Signals) -> Act:
    """The fault that ends a process with a signal; it is started again later."""

    async def act(harm: Harm, fault: Fault) -> None:
        await harm.ended(fault, chosen(harm, fault), number)

    return act


def stopping(chosen: Chosen) -> Act:
    """The fault that stops a process, and all of its children, for a while."""

    async def act(harm: Harm, fault: Fault) -> None:
        pid = chosen(harm, fault).pid
        below = [] if pid is None else [pid, *processes.children_of(pid)]
        is_host = chosen is daemon
        await _stopped(harm, fault, below[:1] if is_host else below)

    return act


async def _stopped(harm: Harm, fault: Fault, pids: list[int], **what: object) -> None:
    async with harm.lasting(fault, pids=pids, **what):
        processes.signal_all(pids, signal.SIGSTOP)
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            processes.signal_all(pids, signal.SIGCONT)


def _holder(harm: Harm, fault: Fault) -> list[int]:
    """A holder with a session, chosen by the fault; none if there is none."""
    holders = [pid for pid in sorted(harm.product.holders()) if harm.product.sessions_of(pid)]
    return [holders[fault.choice % len(holders)]] if holders else []


async def holder_stop(harm: Harm, fault: Fault) -> None:
    """Stop one holder for a while."""
    holders = await asyncio.to_thread(_holder, harm, fault)
    touched = [session for pid in holders for session in harm.product.sessions_of(pid)]
    await _stopped(harm, fault, holders, touched=touched)


async def holder_kill(harm: Harm, fault: Fault) -> None:
    """Kill one holder, and with it the session that it holds."""
    holders = await asyncio.to_thread(_holder, harm, fault)
    victims = [session for pid in holders for session in harm.product.sessions_of(pid)]
    async with harm.lasting(fault, pids=holders, victims=victims):
        processes.signal_all(holders, signal.SIGKILL)


async def fork_server_kill(harm: Harm, fault: Fault) -> None:
    """Kill the process that makes holders."""
    pids = await asyncio.to_thread(harm.product.fork_servers)
    async with harm.lasting(fault, pids=pids):
        processes.signal_all(pids, signal.SIGKILL)


async def fork_server_stop(harm: Harm, fault: Fault) -> None:
    """Stop the process that makes holders for a while; sessions that run have their own."""
    await _stopped(harm, fault, await asyncio.to_thread(harm.product.fork_servers))


def slow_start(chosen: Chosen) -> Act:
    """The fault that kills a process, and lets it run only a tenth of the time as it starts."""

    async def act(harm: Harm, fault: Fault) -> None:
        process = chosen(harm, fault)
        async with harm.lasting(fault, process=process.name):
            await process.end(signal.SIGKILL)
            process.start()
            await _slowed(process, fault.seconds, is_alone=chosen is daemon)
        await harm.start(fault, process)

    return act


async def _slowed(process: Process, seconds: float, *, is_alone: bool) -> None:
    """Stop a process again and again, and its children unless it is to be slow alone."""
    end = asyncio.get_running_loop().time() + seconds
    while (pid := process.pid) is not None and asyncio.get_running_loop().time() < end:
        pids = [pid] if is_alone else [pid, *await asyncio.to_thread(processes.children_of, pid)]
        processes.signal_all(pids, signal.SIGSTOP)
        await asyncio.sleep(_STOPPED_SECONDS)
        processes.signal_all(pids, signal.SIGCONT)
        await asyncio.sleep(_RUNNING_SECONDS)


async def everything_kill(harm: Harm, fault: Fault) -> None:
    """Kill servers, daemon and backends at once, and start them all again."""
    product = harm.product
    everything = [*product.backends.values(), product.daemon, *product.servers]
    async with harm.lasting(fault, process="everything"):
        for process in everything:
            process.send(signal.SIGKILL)
        await asyncio.gather(*(process.end(signal.SIGKILL) for process in everything))
        await asyncio.sleep(fault.seconds)
        for process in everything:
            process.start()
    await asyncio.gather(*(harm.start(fault, process) for process in everything))
