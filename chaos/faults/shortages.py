"""Faults by shortage: no descriptors, no memory, no room on a disk, a database that is locked."""

import asyncio
import os
import resource
import signal
import sqlite3
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from chaos.faults.harm import Act, Harm
from chaos.faults.killing import Chosen, daemon
from chaos.faults.schedule import Fault
from chaos.plant import disks, processes
from chaos.plant.groups import Group
from chaos.plant.processes import children_of

_MOST_SPARE_DESCRIPTORS: Final = 4
_MOST_SPARE_BYTES: Final = 16 << 20
_MOST_SPARE_PROCESSES: Final = 4


def _limited(chosen: Chosen, kind: int, used: str) -> Act:
    """The fault that leaves a process little more of something than it uses."""

    async def act(harm: Harm, fault: Fault) -> None:
        process = chosen(harm, fault)
        pid = process.pid
        if pid is None:
            return
        before = resource.prlimit(pid, kind)
        limit = _used(pid, used) + _spare(fault, used)
        async with harm.lasting(fault, process=process.name, limit=limit):
            resource.prlimit(pid, kind, (limit, before[1]))
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                with suppress(ProcessLookupError):
                    resource.prlimit(pid, kind, before)
        # A process may die of it. Its supervisor would start it again.
        if process.pid is None:
            await harm.start(fault, process)

    return act


def _used(pid: int, what: str) -> int:
    if what == "descriptors":
        return processes.descriptors_of(pid)
    return processes.address_space_bytes(pid)


def _spare(fault: Fault, what: str) -> int:
    most = _MOST_SPARE_DESCRIPTORS if what == "descriptors" else _MOST_SPARE_BYTES
    return fault.choice % most


def descriptors(chosen: Chosen) -> Act:
    """The fault that leaves a process a handful of descriptors, or none."""
    return _limited(chosen, resource.RLIMIT_NOFILE, "descriptors")


def memory(chosen: Chosen) -> Act:
    """The fault that leaves a process a few megabytes, or none."""
    return _limited(chosen, resource.RLIMIT_AS, "memory")


def disk_full(name: str) -> Act:
    """The fault that fills the disk on which the data or the state directory lies."""

    async def act(harm: Harm, fault: Fault) -> None:
        disk = _disk(harm, name)
        filler = disk / ".filler"
        async with harm.lasting(fault):
            await asyncio.to_thread(_fill, filler)
            try:
                await asyncio.sleep(fault.seconds)
            finally:
                filler.unlink(missing_ok=True)

    return act


def _disk(harm: Harm, name: str) -> Path:
    """The disk of the data or the state directory: never that of the machine, for others work."""
    disk: Path = getattr(harm.product, name)
    if not disk.is_mount():
        raise RuntimeError(f"{disk} is no disk of this run")
    return disk


def disk_read_only(name: str, chosen: Chosen) -> Act:
    """The fault that lets nobody open a file of a disk for writing.

    Half of the time the process that uses the disk is started on it as it is.
    """

    async def act(harm: Harm, fault: Fault) -> None:
        disk, process = _disk(harm, name), chosen(harm, fault)
        is_restarted = bool(fault.choice % 2)
        async with harm.lasting(fault, restarted=is_restarted):
            if is_restarted:
                await process.end(signal.SIGTERM)
            await asyncio.to_thread(disks.make_read_only, disk)
            try:
                if is_restarted:
                    process.start()
                await asyncio.sleep(fault.seconds)
            finally:
                await asyncio.to_thread(disks.unmount, disk)
        if is_restarted or process.pid is None:
            await harm.start(fault, process)

    return act


def processes_of(chosen: Chosen) -> Act:
    """The fault that leaves a process and its children a few more processes and threads, or none.

    Programs that run have their own holders, and are left alone.
    """

    async def act(harm: Harm, fault: Fault) -> None:
        process = chosen(harm, fault)
        pid = process.pid
        if pid is None:
            return
        below = harm.product.fork_servers if chosen is daemon else partial(children_of, pid)
        group = Group(f"holdline-chaos-{os.getpid()}-{fault.number}", pid)
        try:
            for child in await asyncio.to_thread(below):
                group.add(child)
            limit = group.limit(fault.choice % _MOST_SPARE_PROCESSES)
            async with harm.lasting(fault, process=process.name, limit=limit):
                await asyncio.sleep(fault.seconds)
        finally:
            group.close()
        if process.pid is None:
            await harm.start(fault, process)

    return act


def _fill(filler: Path) -> None:
    """Take all the room that is left, to the last block."""
    descriptor = os.open(filler, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        size, step = 0, 1 << 24
        while step >= 4096:
            try:
                os.posix_fallocate(descriptor, size, step)
                size += step
            except OSError:
                step //= 2
    finally:
        os.close(descriptor)


async def sqlite_lock(harm: Harm, fault: Fault) -> None:
    """Hold the write lock of the SQLite file for a while, as a foreign program may."""
    held = await asyncio.to_thread(_locked, harm.product.data / "db.sqlite3")
    async with harm.lasting(fault):
        try:
            await asyncio.sleep(fault.seconds)
        finally:
            await asyncio.to_thread(held.close)


def _locked(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=30, isolation_level=None, check_same_thread=False)
    connection.execute("BEGIN IMMEDIATE")
    return connection
