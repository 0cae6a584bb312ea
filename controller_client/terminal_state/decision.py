"""From a snapshot to an answer: who counts as waiting, how long that must have held, and what kind of input it wants.

Pure: no clock, no kernel.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from controller_client.protocol.messages import Evidence
from controller_client.terminal_state.probe import Snapshot
from controller_client.terminal_state.prompt_text import Likeness
from controller_client.terminal_state.waiter import How, Waiter

OUTSIDER_SETTLE_SECONDS: Final = 0.008
"""A reader outside the tree has no counters to prove that it slept."""
OPAQUE_RELAY_SETTLE_SECONDS: Final = 0.02
"""A relay that may not be inspected may have output of the program under way."""
PATIENT_SECONDS: Final = 1.0
PATIENT_SETTLE_SECONDS: Final = 0.02
"""An editor or a monitor that sleeps on the keyboard alone, for a second or more at a time, does nothing else until then."""
SHARED_SETTLE_SECONDS: Final = 0.25
GUESS_SETTLE_SECONDS: Final = 0.3
TEXT_SETTLE_SECONDS: Final = 1.5
ESCAPE_SETTLE_SECONDS: Final = 1.2
"""Programs hold a lone ESC for up to a second, as it may be the start of a key's sequence."""


class Requirement(NamedTuple):
    """A claim that may be made once it has held for ``settle_seconds`` (zero: now, if the snapshot still holds)."""

    waiter: Waiter
    evidence: Evidence
    settle_seconds: float
    by_silence: bool = False
    """Only silence counts, not for how long the waiter was seen: waking it moves its counter."""

    @property
    def key(self) -> tuple[How, int, int, bool]:
        """Two requirements with equal keys are one claim, ripening."""
        waiter = self.waiter
        return waiter.how, waiter.pid, waiter.task.tid if waiter.task else 0, waiter.is_timed


class Context(NamedTuple):
    """What the snapshot does not know. ``likeness`` is of the text printed since the last input that completed a line."""

    likeness: Callable[[], Likeness]
    is_after_escape: bool
    is_editing: bool = False
    """A line editor has asked for pasted text to be marked, and printed something since the last input."""


def requirement(snapshot: Snapshot, context: Context) -> Requirement | None:
    """What it takes to say that the program waits; None when it does not, or when that cannot be known yet."""
    if snapshot.has_unread or snapshot.is_relaying:
        return None
    waiter = min(snapshot.waiters, key=lambda candidate: (candidate.how, candidate.is_timed), default=None)
    if waiter is None:
        return _guess(snapshot, context) if snapshot.is_unreachable else None
    if snapshot.inner_device and not snapshot.is_asleep:
        return None
    if waiter.how >= How.WOKEN or (waiter.is_loop and snapshot.has_workers):
        return _shared(snapshot, context, waiter)
    return _own(snapshot, context, waiter)


def _own(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement:
    is_polling = snapshot.flags is not None and snapshot.flags.is_polling
    is_timed = waiter.is_timed or is_polling
    evidence: Evidence = "kernel"
    settle = 0.0 if waiter.task or snapshot.blind else OUTSIDER_SETTLE_SECONDS
    if snapshot.is_relay_opaque:
        settle = max(settle, OPAQUE_RELAY_SETTLE_SECONDS)
    if is_timed or snapshot.is_busy:
        evidence = "kernel+quiet"
        is_patient = (waiter.timeout_seconds or 0.0) >= PATIENT_SECONDS and not is_polling and not snapshot.is_busy
        settle = max(settle, PATIENT_SETTLE_SECONDS if is_patient else SHARED_SETTLE_SECONDS)
    # Whoever holds the ESC back sleeps with a short timeout, until it counts as a key of its own.
    is_impatient = is_polling or (waiter.timeout_seconds is not None and waiter.timeout_seconds <= ESCAPE_SETTLE_SECONDS)
    if context.is_after_escape and is_impatient:
        settle = max(settle, ESCAPE_SETTLE_SECONDS)
    return Requirement(waiter, evidence, settle)


def _shared(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement | None:
    likeness = _likeness(snapshot, context)
    if likeness is Likeness.NONE:
        return None
    is_prompt = likeness is Likeness.PROMPT
    settle = SHARED_SETTLE_SECONDS if is_prompt else TEXT_SETTLE_SECONDS
    if is_prompt and _is_left_alone(snapshot, context, waiter):
        settle = PATIENT_SETTLE_SECONDS
    if context.is_after_escape:
        settle = max(settle, ESCAPE_SETTLE_SECONDS)
    return Requirement(waiter, "kernel+quiet" if is_prompt else "heuristic", settle, by_silence=waiter.how is How.WOKEN)


def _is_left_alone(snapshot: Snapshot, context: Context, waiter: Waiter) -> bool:
    """Whether nothing but a timer can keep an event loop from its prompt: one that is far off, or that a line editor lives with."""
    is_alone = waiter.is_loop and not waiter.is_shared and not snapshot.has_workers
    return is_alone and (context.is_editing or (waiter.timeout_seconds or 0.0) >= PATIENT_SECONDS)


def _guess(snapshot: Snapshot, context: Context) -> Requirement | None:
    likeness = _likeness(snapshot, context)
    if likeness is Likeness.NONE or not snapshot.is_asleep:
        return None
    settle = GUESS_SETTLE_SECONDS if likeness is Likeness.PROMPT else TEXT_SETTLE_SECONDS
    return Requirement(Waiter(How.MIXED, "a process out of sight"), "heuristic", settle)


def _likeness(snapshot: Snapshot, context: Context) -> Likeness:
    if snapshot.flags is not None and snapshot.flags.is_secret:
        return Likeness.PROMPT
    return context.likeness()
