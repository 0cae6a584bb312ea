"""One look at a session's terminal: everything the kernel says about it, as one snapshot.

Order matters. Counters are read first, then whether input is unread, then who sleeps where: when the counters of the
tasks concerned are still the same at the end, they slept through the whole look and its parts are true together.
"""

import os
from dataclasses import dataclass, field
from typing import Final

from controller_client.terminal_state.process_table import Counters, Process, ProcessTable, Task, all_unmoved, status_or_none
from controller_client.terminal_state.relayed_terminal import InnerMaster, has_output_under_way
from controller_client.terminal_state.terminal_device import (
    Flags,
    Identity,
    has_unread_input,
    identity_of,
    is_read_pending,
    open_inner,
    open_slave,
    read_flags,
    wake_sleepers,
)
from controller_client.terminal_state.waiter import How, Occupation, Waiter, inspect, occupation_of

MAX_RELAYS: Final = 4


@dataclass(slots=True)
class Snapshot:
    """What was found. ``flags`` is None for an inner terminal that cannot be opened."""

    flags: Flags | None = None
    has_unread: bool = False
    waiters: list[Waiter] = field(default_factory=list)
    blind: list[Process] = field(default_factory=list)
    """Foreground processes that may not be inspected."""
    is_unreachable: bool = False
    """There is a terminal or a process we cannot even reach: no kernel evidence is possible there."""
    was_woken: bool = False
    """The sleepers were woken: with blind processes, no waiter is then proof and not ignorance."""
    is_asleep: bool = True
    """No foreground task is runnable, the relays included."""
    is_busy: bool = False
    """Some other task of the tree runs, or some other task of the foreground sleeps for a while only."""
    has_workers: bool = False
    """Some other task of the tree runs or sleeps for a while only, in the foreground or not."""
    concerned: list[Task] = field(default_factory=list)
    """The tasks this answer is about: waiters, relays, blind ones."""
    is_settled: bool = False
    """Every task of the tree was seen asleep, so equal counters mean that nothing happened."""
    inner_device: int = 0
    is_relaying: bool = False
    """A relay has yet to read what its inner terminal printed."""
    is_relay_opaque: bool = False
    """Whether it has cannot be known."""

    def still_holds(self) -> bool:
        """Whether the tasks concerned have slept since before the look began."""
        return all_unmoved(self.concerned)


@dataclass(slots=True)
class Options:
    """What a look may do beyond reading. ``outsiders`` are pids of readers outside the tree."""

    outsiders: list[int] = field(default_factory=list)
    woken: Counters | None = None
    """Counters of blind tasks right before their terminal's sleepers were woken."""


class TerminalProbe:
    """Looks at one session."""

    def __init__(self, master_fd: int, leader_pid: int) -> None:
        self._master = master_fd
        self.table = ProcessTable(leader_pid)
        self.identity: Identity | None = None

    def look(self, options: Options, *, is_hasty: bool = False) -> Snapshot:
        """Take a snapshot; OSError when the terminal is gone. A hasty one goes no further than input that is still unread."""
        slave = open_slave(self._master)
        try:
            if is_hasty and has_unread_input(slave):
                return Snapshot(has_unread=True)
            self.table.refresh()
            group = self.table.group(os.tcgetpgrp(self._master))
            snapshot = self._terminal(slave, group, options, depth=0)
        finally:
            os.close(slave)
        self._judge_the_others(snapshot, group)
        return snapshot

    def is_unmoved(self) -> bool:
        """Whether nobody of the tree got the CPU since the last look."""
        return self.table.is_unmoved()

    def wake(self) -> Counters:
        """Wake everybody who sleeps on the terminal; the counters from right before, to see at the next look who ran."""
        slave = open_slave(self._master)
        try:
            before = self.table.read_counters()
            wake_sleepers(slave)
        finally:
            os.close(slave)
        return before

    def close(self) -> None:
        """Release every descriptor."""
        self.table.close()

    # ---- one terminal ------------------------------------------------------------------------------------------------

    def _terminal(self, slave: int, group: list[Process], options: Options, depth: int) -> Snapshot:
        snapshot = Snapshot(flags=read_flags(slave), is_unreachable=not group)
        identity = identity_of(os.fstat(slave))
        if depth == 0:
            self.identity = identity
        snapshot.has_unread = has_unread_input(slave)
        is_locked = not snapshot.has_unread and is_read_pending(slave)
        masters = self._foreground(snapshot, group, identity)
        inner = self._inner_session(snapshot, group, masters) if depth < MAX_RELAYS else []
        if inner:
            return self._follow(snapshot, group, inner, masters=masters, options=options, depth=depth)
        if not snapshot.waiters and group:
            self._detached(snapshot, group, identity)
        if not snapshot.waiters and group:
            self._outsiders(snapshot, group, identity, options)
        if is_locked and (snapshot.blind or not snapshot.waiters):
            snapshot.waiters.append(self._lock_holder(group))
        elif options.woken is not None and snapshot.blind and not snapshot.waiters:
            self._woken(snapshot, options.woken)
        return snapshot

    def _foreground(self, snapshot: Snapshot, group: list[Process], identity: Identity) -> list[InnerMaster]:
        """Inspect the foreground; the masters of the terminals it relays."""
        masters: list[InnerMaster] = []
        for process in group:
            try:
                found = inspect(process, identity, process.session)
            except PermissionError:
                self._blind(snapshot, process)
                continue
            snapshot.waiters += found.waiters
            masters += found.masters
            if found.is_running:
                snapshot.is_asleep = False
        snapshot.concerned += [waiter.task for waiter in snapshot.waiters if waiter.task]
        return masters

    def _blind(self, snapshot: Snapshot, process: Process) -> None:
        status = status_or_none(process)
        if status is None or not status.is_live:
            return
        snapshot.blind.append(process)
        snapshot.concerned += process.tasks
        snapshot.is_asleep = snapshot.is_asleep and status.is_asleep

    def _lock_holder(self, group: list[Process]) -> Waiter:
        one = group[0] if len(group) == 1 else None
        status = status_or_none(one) if one else None
        # A reader thread next to others may be one of many things its process waits for.
        how = How.MIXED if any(len(process.tasks) > 1 for process in group) else How.READ_LOCK
        return Waiter(how, status.comm if status else "a process", one.pid if one and status else 0)

    def _woken(self, snapshot: Snapshot, before: Counters) -> None:
        snapshot.was_woken = True
        for process in snapshot.blind:
            for task in process.tasks:
                if task.tid in before and task.counter != before[task.tid]:
                    status = status_or_none(process)
                    snapshot.waiters.append(Waiter(How.WOKEN, status.comm if status else "a process", process.pid, task))
                    return

    def _detached(self, snapshot: Snapshot, group: list[Process], identity: Identity) -> None:
        """Programs of the tree that gave up their terminal but not its descriptors (su -c, setsid, a screen server).

        None of job control's rules keeps them from reading it while the foreground waits for them.
        """
        own = {process.session for process in group}
        detached = [process for process in self.table.processes if process.session not in own]
        statuses = [status_or_none(process) for process in detached]
        without = [process for process, status in zip(detached, statuses, strict=True) if status and not status.tty]
        self._foreground(snapshot, without, identity)

    def _outsiders(self, snapshot: Snapshot, group: list[Process], identity: Identity, options: Options) -> None:
        for pid in options.outsiders:
            outsider = Process(pid)
            try:
                outsider.refresh()
                # Our own background jobs hold the terminal too, but may not read it.
                if outsider.session != group[0].session:
                    waiters = inspect(outsider, identity, 0).waiters
                    snapshot.waiters += [Waiter(waiter.how, waiter.comm, pid, None, waiter.timeout_seconds) for waiter in waiters]
            except OSError:
                continue
            finally:
                outsider.close()

    # ---- relays ------------------------------------------------------------------------------------------------------

    def _inner_session(self, snapshot: Snapshot, group: list[Process], masters: list[InnerMaster]) -> list[Process]:
        """Foreground processes of the terminal behind a relay (sudo, script, expect, apt), if a relay is in front."""
        if not group or not (masters or snapshot.blind):
            return []
        own = {process.session for process in group}
        devices = {master.device for master in masters}
        found: list[Process] = []
        for process in self.table.processes:
            if process.session in own:
                continue
            status = status_or_none(process)
            if status and status.tty and status.pgrp == status.foreground_pgrp and (status.tty in devices or not devices):
                found.append(process)
        return [process for process in found if process.session == found[0].session]

    def _follow(
        self, outer: Snapshot, group: list[Process], inner: list[Process], *, masters: list[InnerMaster], options: Options, depth: int
    ) -> Snapshot:
        """The inner terminal's answer counts: a relay itself always listens. But it must have passed on everything, both ways."""
        status = status_or_none(inner[0])
        device = status.tty if status else 0
        fd = open_inner([process.pid for process in inner], device)
        if fd is None:
            statuses = [status_or_none(process) for process in inner]
            snapshot = Snapshot(is_unreachable=True, blind=inner, is_asleep=all(each.is_asleep for each in statuses if each))
        else:
            try:
                snapshot = self._terminal(fd, inner, options, depth + 1)
            finally:
                os.close(fd)
        under_way = [has_output_under_way(master) for master in masters if master.device == device]
        snapshot.is_relaying |= True in under_way
        snapshot.is_relay_opaque |= None in under_way or not under_way
        snapshot.has_unread |= outer.has_unread
        snapshot.is_asleep &= outer.is_asleep
        snapshot.inner_device = snapshot.inner_device or device
        snapshot.concerned += [task for process in group for task in process.tasks]
        return snapshot

    # ---- the rest of the tree ------------------------------------------------------------------------------------------

    def _judge_the_others(self, snapshot: Snapshot, group: list[Process]) -> None:
        """Whether the rest of the tree works: runs now, or belongs to the foreground and only sleeps for a while.

        A reader that hands the input on to another thread or process sleeps on the terminal again long before the answer.
        """
        snapshot.is_settled = snapshot.is_asleep
        if self.table.has_only(snapshot.concerned):
            return
        concerned = {task.tid for task in snapshot.concerned}
        pgrps = {process.pgrp for process in group}
        for process in self.table.processes:
            for task in process.tasks:
                if task.tid in concerned:
                    continue
                occupation = occupation_of(task)
                if occupation is Occupation.RUNNING or task.read_counter() != task.counter:
                    # One that moved since the walk may have forked since, too.
                    snapshot.is_busy = snapshot.has_workers = True
                    snapshot.is_settled = False
                elif occupation is Occupation.WORKING:
                    snapshot.has_workers = True
                    snapshot.is_busy |= process.pgrp in pgrps
