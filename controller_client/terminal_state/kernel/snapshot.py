"""The findings of one look at a terminal, and what a look needs of earlier ones."""

from dataclasses import dataclass, field

from controller_client.terminal_state.kernel.process_table import Counters, ObservedProcess
from controller_client.terminal_state.kernel.relayed_terminal import Besides
from controller_client.terminal_state.kernel.task import Task, all_unmoved
from controller_client.terminal_state.kernel.terminal_device import Flags
from controller_client.terminal_state.kernel.waiter import How, Waiter


@dataclass(slots=True)
class Snapshot:
    """The findings of one look. ``flags`` is None for an inner terminal that cannot be opened."""

    flags: Flags | None = None
    has_unread: bool = False
    is_unlocked: bool = False
    """Nobody holds the terminal's read lock, so nobody sleeps in a read of it."""
    waiters: list[Waiter] = field(default_factory=list)
    blind: list[ObservedProcess] = field(default_factory=list)
    """Foreground processes that may not be inspected."""
    is_unreachable: bool = False
    """Some terminal or process is out of reach, so the kernel can give no evidence there."""
    is_asleep: bool = True
    """No foreground task is runnable, the relays included."""
    is_busy: bool = False
    """Another task of the tree runs, or another task of the foreground sleeps only for a time."""
    has_workers: bool = False
    """Another task of the tree runs or sleeps only for a time, in the foreground or not."""
    concerned: list[Task] = field(default_factory=list)
    """The tasks on which this snapshot rests: waiters, relays, tasks of blind processes."""
    is_settled: bool = False
    """Every task of the tree was seen asleep, so equal counters mean that nothing happened."""
    inner_device: int = 0
    relaying: list[Task] = field(default_factory=list)
    """The tasks that listen to other terminals and not to this one, for as long as it takes."""
    besides: list[Besides] = field(default_factory=list)
    """What else may set the relays on the way to work."""
    is_relaying: bool = False
    """A relay has not read all output of its inner terminal."""
    is_relay_opaque: bool = False
    """It cannot be known whether a relay has read all output."""

    @property
    def is_polling(self) -> bool:
        """True if reads of the terminal return after a while without input."""
        return self.flags is not None and self.flags.is_polling

    def may_hold(self, waiter: Waiter) -> bool:
        """Return whether a waiter is what it seems: without the lock, a read is another call.

        It may be a call of 32 bits, or its descriptor led elsewhere when it began.
        """
        return not (self.is_unlocked and waiter.how is How.READ)

    def add_relay(self, outer: "Snapshot") -> None:
        """Add the findings at the relay that stands between this terminal and the outer one."""
        self.besides += outer.besides
        if self.flags is not None and outer.flags is not None:
            # Input goes through both terminals. It is shown if either shows it, and reads return
            # without it if they do on either.
            self.flags = self.flags._replace(
                is_echoing=self.flags.is_echoing or outer.flags.is_echoing,
                is_polling=self.flags.is_polling or outer.flags.is_polling,
            )
        self.has_unread |= outer.has_unread
        self.is_asleep &= outer.is_asleep
        # Other tasks of the relay may be at work.
        self.concerned += [*outer.concerned, *outer.relaying]

    def still_holds(self) -> bool:
        """Return whether the concerned tasks have slept since before the look began."""
        return all_unmoved(self.concerned)


@dataclass(slots=True)
class Options:
    """The findings of earlier looks that a look needs.

    ``outsiders`` are pids of readers outside the tree, ``signalled`` those of processes to which
    the terminal sends a signal when it has input.
    """

    outsiders: list[int] = field(default_factory=list)
    signalled: list[int] = field(default_factory=list)
    woken: Counters | None = None
    """Counters of blind tasks right before their terminal's sleepers were woken."""


def is_proof(snapshot: Snapshot) -> bool:
    """Return whether a snapshot proves without any silence that its terminal is waited for."""
    # A read that returns without input is no wait by itself, but a poll of such a terminal is.
    ways = {How.POLL} if snapshot.is_polling else {How.READ, How.READ_LOCK, How.POLL}
    return not snapshot.is_relaying and any(
        waiter.how in ways and not waiter.is_timed for waiter in snapshot.waiters
    )
