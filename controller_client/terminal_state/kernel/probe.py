"""One look at a session's terminal: everything the kernel says about it, as one snapshot.

The order matters: first the counters are read, then the unread input, then the sleeping tasks. If
the counters of the concerned tasks are still the same at the end, these tasks slept through the
whole look, and all its parts were true at the same time.
"""

import os
from dataclasses import replace
from typing import Final

from controller_client.system.absence import raise_shortage
from controller_client.terminal_state.kernel.occupation import (
    Occupation,
    all_asleep,
    company_of,
    is_asleep_beside,
    work_of_others,
)
from controller_client.terminal_state.kernel.process_table import (
    Counters,
    ObservedProcess,
    ProcessTable,
    status_or_none,
)
from controller_client.terminal_state.kernel.relayed_terminal import (
    InnerMaster,
    has_output_under_way,
    inner_session,
    outputs_under_way,
)
from controller_client.terminal_state.kernel.snapshot import Options, Snapshot, is_proof
from controller_client.terminal_state.kernel.terminal_device import (
    Identity,
    has_unread_input,
    identity_of,
    is_read_pending,
    open_inner,
    open_slave,
    read_flags,
    wake_sleepers,
)
from controller_client.terminal_state.kernel.waiter import (
    go_on_with,
    inspect,
    lock_holder,
    signalled_waiter,
    woken_waiter,
)

MAX_RELAYS: Final = 4
MAX_PANES: Final = 8


class TerminalProbe:
    """The looks at the terminal of one session."""

    def __init__(self, master_fd: int, leader_pid: int) -> None:
        self._master = master_fd
        self.table = ProcessTable(leader_pid)
        self.identity: Identity | None = None
        # The process groups in the foreground of the terminals that the last look passed.
        self._foregrounds: set[int] = set()

    def look(self, options: Options, *, is_hasty: bool = False) -> Snapshot:
        """Take a snapshot; OSError when the terminal is gone.

        A hasty look ends at once if there is unread input.
        """
        slave = open_slave(self._master)
        try:
            if is_hasty and has_unread_input(slave):
                return Snapshot(has_unread=True)
            self.table.refresh()
            self._foregrounds = set()
            group = self.table.group(os.tcgetpgrp(self._master))
            snapshot = self._look_at(slave, group, options, depth=0)
        finally:
            os.close(slave)
        self._note_work_of_others(snapshot, group)
        self.table.leave_orphans(self._foregrounds)
        return snapshot

    def is_whole(self, snapshot: Snapshot) -> bool:
        """Return whether nothing works that the last look, whose ``snapshot`` holds, did not see.

        Processes in a foreground that were not part of the tree are part of it from now on.
        """
        waiters = [waiter.task for waiter in snapshot.waiters if waiter.task]
        return self.table.is_still(waiters) and not self.table.adopt_orphans(self._foregrounds)

    def wake(self) -> Counters:
        """Wake every task that sleeps on the terminal, and return the counters from right before.

        The next look sees by the counters which tasks ran.
        """
        slave = open_slave(self._master)
        try:
            before = self.table.read_counters()
            wake_sleepers(slave)
        finally:
            os.close(slave)
        return before

    def close(self) -> None:
        """Close every file that is kept open."""
        self.table.close()

    # ---- one terminal ----------------------------------------------------------------------------

    def _look_at(
        self, slave: int, group: list[ObservedProcess], options: Options, depth: int
    ) -> Snapshot:
        """Look at one terminal: its foreground first, then where else a reader may be."""
        snapshot = Snapshot(flags=read_flags(slave), is_unreachable=not group)
        identity = identity_of(os.fstat(slave))
        if depth == 0:
            self.identity = identity
        self._foregrounds |= {process.pgrp for process in group}
        snapshot.has_unread = has_unread_input(slave)
        is_locked = None if snapshot.has_unread else is_read_pending(slave)
        snapshot.is_unlocked = is_locked is False
        masters = self._inspect_group(snapshot, group, identity)
        inner = []
        if group and (masters or snapshot.blind) and depth < MAX_RELAYS:
            below = self.table.descendants_of(*(process.pid for process in snapshot.blind))
            inner = inner_session(self.table.processes, group, masters, below)
        if inner:
            behind = self._look_behind_relay(
                snapshot, group, inner, masters=masters, options=options, depth=depth
            )
            is_read = not behind.waiters and self._is_read_from_behind(
                snapshot, group, inner, identity
            )
            return snapshot if is_read else behind
        for waiter in snapshot.waiters if masters else ():
            # A relay whose program has not begun: the reader is not all of it.
            waiter.listens_elsewhere = waiter.is_one_of_several = True
        if not snapshot.waiters and group:
            self._inspect_elsewhere(snapshot, group, identity, options=options, depth=depth)
        # The read lock proves that some task reads, but not which one: after the end of the program
        # that was started, an orphan that dies with the terminal. Tasks that may not be inspected
        # can also wait in a poll, which only waking them shows.
        if is_locked and (snapshot.blind or not snapshot.waiters):
            if self.table.has_live_leader():
                snapshot.waiters += lock_holder(group, identity, snapshot.blind)
        elif options.woken is not None and snapshot.blind and not snapshot.waiters:
            snapshot.waiters += woken_waiter(snapshot.blind, options.woken)
        return snapshot

    def _inspect_group(
        self,
        snapshot: Snapshot,
        group: list[ObservedProcess],
        identity: Identity,
        *,
        is_own_session: bool = True,
    ) -> list[InnerMaster]:
        """Note the waiters of a group, and return the masters of the terminals that it relays.

        In a session of its own, ``/dev/tty`` is another terminal.
        """
        masters: list[InnerMaster] = []
        for process in group:
            try:
                family = self.table.family_of(process.pid)
                session = process.session if is_own_session else 0
                found = inspect(process, identity, session, family)
            except PermissionError:
                self._note_blind(snapshot, process)
                continue
            if found.is_opaque and not found.waiters:
                self._note_blind(snapshot, process)
            snapshot.waiters += filter(snapshot.may_hold, found.waiters)
            masters += found.masters
            snapshot.besides += found.besides
            snapshot.relaying += found.relaying
            snapshot.is_asleep &= not found.is_running
        snapshot.concerned += [waiter.task for waiter in snapshot.waiters if waiter.task]
        return masters

    def _note_blind(self, snapshot: Snapshot, process: ObservedProcess) -> None:
        status = status_or_none(process)
        if status is None or not status.is_live:
            return
        snapshot.blind.append(process)
        snapshot.concerned += process.tasks
        snapshot.is_asleep = snapshot.is_asleep and all_asleep(process)

    def _inspect_elsewhere(
        self,
        snapshot: Snapshot,
        group: list[ObservedProcess],
        identity: Identity,
        *,
        options: Options,
        depth: int,
    ) -> None:
        """Look for a waiter that does not sleep on the terminal in its foreground."""
        masters = self._inspect_detached(snapshot, group, identity)
        if not snapshot.waiters and self._inspect_outsiders(snapshot, group, identity, options):
            self.table.refresh()
            outsiders, snapshot.waiters = snapshot.waiters, []
            masters = self._inspect_detached(snapshot, group, identity)
            snapshot.waiters = snapshot.waiters or outsiders
        if snapshot.waiters and masters and depth == 0:
            self._look_into_panes(snapshot, masters, options)
        if not snapshot.waiters and snapshot.is_asleep:
            self._note_signalled(snapshot, group, options)

    def _inspect_detached(
        self, snapshot: Snapshot, group: list[ObservedProcess], identity: Identity
    ) -> list[InnerMaster]:
        """Inspect programs of the tree that gave up their terminal but kept its descriptors.

        Examples are su -c, setsid and a screen server. Job control does not keep these programs
        from reading the terminal while the foreground waits for them.
        """
        own = {process.session for process in group}
        detached = [
            process
            for process in self.table.processes
            if process.session not in own and (status := status_or_none(process)) and not status.tty
        ]
        return self._inspect_group(snapshot, detached, identity)

    def _inspect_outsiders(
        self, snapshot: Snapshot, group: list[ObservedProcess], identity: Identity, options: Options
    ) -> bool:
        """Note readers outside of the tree; return whether one of them now belongs to the tree.

        That is a multiplexer: what runs on its terminals runs for this session.
        """
        has_adopted = False
        for pid in options.outsiders:
            outsider = ObservedProcess(pid)
            try:
                outsider.refresh()
                # Background jobs of the session hold the terminal too, but may not read it.
                if outsider.session != group[0].session:
                    found = inspect(outsider, identity, 0)
                    taken = filter(snapshot.may_hold, found.waiters)
                    snapshot.waiters += [replace(waiter, task=None) for waiter in taken]
                    if found.waiters and 0 < len(found.masters) <= MAX_PANES:
                        self.table.adopt(pid)
                        has_adopted = True
            except OSError as error:
                raise_shortage(error)
            finally:
                outsider.close()
        return has_adopted

    def _note_signalled(
        self, snapshot: Snapshot, group: list[ObservedProcess], options: Options
    ) -> None:
        """Note processes that a signal tells of input: nobody sleeps on the terminal then."""
        for process in group:
            if process.pid in options.signalled:
                family = self.table.family_of(process.pid)
                snapshot.waiters += signalled_waiter(process, family)
                snapshot.concerned += process.tasks

    # ---- relays ----------------------------------------------------------------------------------

    def _look_behind_relay(
        self,
        outer: Snapshot,
        group: list[ObservedProcess],
        inner: list[ObservedProcess],
        *,
        masters: list[InnerMaster],
        options: Options,
        depth: int,
    ) -> Snapshot:
        """Return the snapshot of the inner terminal, because a relay itself always listens.

        The relay must have passed on everything, both ways, and listen to the outer terminal now: a
        script of expect listens to the inner one alone, and types the answers itself.
        """
        status = status_or_none(inner[0])
        device = status.tty if status else 0
        fd = open_inner([process.pid for process in [*inner, *group]], device)
        if fd is None:
            statuses = [status_or_none(process) for process in inner]
            snapshot = Snapshot(
                is_unreachable=True,
                blind=inner,
                is_asleep=all(each.is_asleep for each in statuses if each),
            )
        else:
            try:
                snapshot = self._look_at(fd, inner, options, depth + 1)
            finally:
                os.close(fd)
        if not outer.waiters and not outer.blind:
            snapshot.waiters, snapshot.is_unreachable = [], False
        is_claimed = bool(snapshot.waiters) and snapshot.is_asleep and outer.is_asleep
        under_way = outputs_under_way(masters, device, is_worth_a_fork=is_claimed)
        snapshot.is_relaying |= True in under_way
        snapshot.is_relay_opaque |= None in under_way or not under_way
        joins_others = any(master.device != device for master in masters)
        go_on_with(outer.waiters, snapshot.waiters, joins_others=joins_others)
        snapshot.inner_device = snapshot.inner_device or device
        snapshot.add_relay(outer)
        return snapshot

    def _look_into_panes(
        self, outer: Snapshot, masters: list[InnerMaster], options: Options
    ) -> None:
        """Look at the terminals of a multiplexer, which itself always listens (tmux, screen).

        The multiplexer waits for input if the programs on all of its terminals do, and not if they
        all work. Which of them gets the input is not known.
        """
        if len(masters) > MAX_PANES:
            return
        panes = [self._look_into_pane(outer, master, options) for master in masters]
        behind = [waiter for pane in panes for waiter in pane.waiters]
        if not behind:
            outer.waiters = []
        for waiter in outer.waiters:
            waiter.behind = behind
            waiter.is_proven = all(is_proof(pane) for pane in panes)
            # The work of a program that may not be inspected cannot be told from its waiting.
            waiter.is_beside_work = any(pane.blind and not pane.waiters for pane in panes)
            waiter.is_foreign = any(each.is_foreign for each in behind)

    def _look_into_pane(self, outer: Snapshot, master: InnerMaster, options: Options) -> Snapshot:
        inner = inner_session(self.table.processes, [], [master])
        fd = open_inner([process.pid for process in inner], master.device)
        if fd is None:
            return Snapshot(is_unreachable=True)
        try:
            pane = self._look_at(fd, inner, options, depth=1)
        finally:
            os.close(fd)
        if pane.waiters:
            under_way = has_output_under_way(master, is_worth_a_fork=True)
            pane.is_relaying |= under_way is not False
        if pane.has_unread:
            pane.waiters = []
        outer.concerned += pane.concerned
        return pane

    def _is_read_from_behind(
        self,
        outer: Snapshot,
        group: list[ObservedProcess],
        inner: list[ObservedProcess],
        identity: Identity,
    ) -> bool:
        """Return whether a process with a terminal of its own reads the outer one; note it.

        Some wrappers open a terminal for a password alone: sshpass is one.
        """
        outer.waiters = []
        outer.concerned = [task for process in group for task in process.tasks]
        self._inspect_group(outer, inner, identity, is_own_session=False)
        return bool(outer.waiters)

    # ---- the rest of the tree --------------------------------------------------------------------

    def _note_work_of_others(self, snapshot: Snapshot, group: list[ObservedProcess]) -> None:
        """Note whether another task of the tree works.

        A reader that passes the input on to another thread or process sleeps on the terminal again
        long before the answer. So the program does not wait while another task runs, or belongs to
        the foreground and sleeps only for a time.
        """
        snapshot.is_settled = snapshot.is_asleep
        if self.table.has_only(snapshot.concerned):
            return
        if not snapshot.waiters:
            # Nothing can be claimed: all that counts is whether the next look may use this one.
            snapshot.is_settled &= is_asleep_beside(group, self.table)
            return
        pgrps = {process.pgrp for process in group}
        concerned = {task.tid for task in snapshot.concerned}
        waiters = {waiter.pid for waiter in snapshot.waiters}
        work = work_of_others(self.table, concerned, waiters, pgrps)
        if snapshot.blind:
            above = self.table.ancestors_of(*waiters)
            # A parent waits for its child. What others wait for is not known.
            snapshot.is_busy |= any(
                process.pid not in waiters | above or not all_asleep(process)
                for process in snapshot.blind
            )
        # A reader on an inner terminal has a foreground of its own.
        busy = pgrps | {each.pgrp for each in self.table.processes if each.pid in waiters}
        snapshot.has_workers = bool(work)
        is_running = any(each.occupation is Occupation.RUNNING for each in work)
        snapshot.is_settled &= not is_running
        snapshot.is_busy |= is_running or any(each.process.pgrp in busy for each in work)
        workers = {each.process.pid for each in work}
        snapshot.is_busy |= any(
            each.may_come_from(workers, waiters, self.table) for each in snapshot.besides
        )
        for waiter in snapshot.waiters:
            for each in (waiter, *waiter.behind):
                each.company = company_of(each.pid, work, self.table)
