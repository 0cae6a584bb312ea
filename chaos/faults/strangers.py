"""Faults by others: a second daemon, another version, a clock that is set."""

import asyncio
import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Final

from chaos.faults.harm import Act, Harm
from chaos.faults.schedule import Fault
from chaos.plant import processes
from chaos.plant.processes import Process

_USAGE_EXIT: Final = 78
_JUMPS: Final = (3600, -3600, 120, -120)


async def second_daemon(harm: Harm, fault: Fault) -> None:
    """Start a second daemon on the same state: it has to refuse to run."""
    other = _other(harm, fault, harm.product.state)
    async with harm.lasting(fault):
        other.start()
        await asyncio.sleep(fault.seconds)
        code = other.exit_code
        await other.end(signal.SIGKILL)
    if code not in {None, _USAGE_EXIT}:
        harm.history.note("left_behind", what="a second daemon on the same state", found=code)


async def cloned_daemon(harm: Harm, fault: Fault) -> None:
    """Run a daemon with a copy of the identity for a while, as if on another machine.

    That machine goes away with the programs that were started there meanwhile.
    """
    clone = harm.product.directory / f"clone-{fault.number}"
    await asyncio.to_thread(_copy_identity, harm.product.state, clone)
    other = _other(harm, fault, clone)
    async with harm.lasting(fault):
        other.start()
        await asyncio.sleep(fault.seconds)
        await other.end(signal.SIGKILL)
    holders = await asyncio.to_thread(harm.product.holders, clone)
    victims = [each for pid in holders for each in harm.product.sessions_of(pid, clone)]
    async with harm.lasting(fault, victims=victims):
        programs = [each for pid in holders for each in processes.children_of(pid)]
        processes.signal_all([*holders, *programs], signal.SIGKILL)
    await asyncio.to_thread(shutil.rmtree, clone)


def _copy_identity(state: Path, clone: Path) -> None:
    clone.mkdir(mode=0o700)
    for path in state.iterdir():
        if path.is_file() and path.stat().st_size < 65536:
            shutil.copy2(path, clone)


def _other(harm: Harm, fault: Fault, state: Path) -> Process:
    log = harm.product.directory / f"other-daemon-{fault.number}.log"
    return Process("other daemon", log, lambda: harm.product.daemon_command(state))


async def daemon_versions(harm: Harm, fault: Fault) -> None:
    """Run the daemon of an older commit for a while, then the present one again."""
    product, at_once = harm.product, replace(fault, seconds=0.0)
    product.trees["daemon"] = product.older
    try:
        await harm.ended(at_once, product.daemon, signal.SIGTERM)
        await asyncio.sleep(fault.seconds)
    finally:
        product.trees["daemon"] = product.tree
    await harm.ended(at_once, product.daemon, signal.SIGTERM)


async def server_versions(harm: Harm, fault: Fault) -> None:
    """Run servers of an older commit on the present tables for a while, then the present ones.

    The servers are replaced one after the other, so that both versions serve side by side.
    """
    product, at_once = harm.product, replace(fault, seconds=0.0)
    product.trees["server"] = product.older
    try:
        for server in product.servers:
            await harm.ended(at_once, server, signal.SIGTERM)
        await asyncio.sleep(fault.seconds)
    finally:
        product.trees["server"] = product.tree
    for server in product.servers:
        await harm.ended(at_once, server, signal.SIGTERM)


def clock(who: str) -> Act:
    """The fault that sets the clock of servers or daemon for a while, then sets it right."""

    async def act(harm: Harm, fault: Fault) -> None:
        set_clock = harm.product.clocks[who].set
        jump = _JUMPS[fault.choice % len(_JUMPS)]
        async with harm.lasting(fault, jump=jump):
            set_clock(jump)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                set_clock(0)

    return act
