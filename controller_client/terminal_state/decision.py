"""The requirement for a verdict on a program: which task has to wait, and after what silence.

Pure: this module reads no clock and asks no kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from controller_client.protocol.messages import Evidence, LiveState, PromptKind
from controller_client.terminal_state.kernel.occupation import Occupation
from controller_client.terminal_state.kernel.snapshot import Snapshot
from controller_client.terminal_state.kernel.waiter import How, Waiter
from controller_client.terminal_state.prompt.shell_arguments import is_named_as_shell
from controller_client.terminal_state.prompt.text import Likeness

OUTSIDER_SETTLE_SECONDS: Final = 0.008
"""For a reader outside the tree, which has no counters to prove that it slept."""
OPAQUE_RELAY_SETTLE_SECONDS: Final = 0.02
"""For a relay that may not be inspected: it may still have output of the program to pass on."""
PATIENT_SECONDS: Final = 1.0
PATIENT_SETTLE_SECONDS: Final = 0.02
"""For an editor or a monitor that sleeps on the keyboard alone for PATIENT_SECONDS or more at a
time: it does nothing else until then.
"""
OUTLAST_SECONDS: Final = 0.1
"""The silence beyond the end of a short timeout that shows that the wait was taken up again."""
# The silence at a prompt if the task also waits for other things, and if the program is out of
# reach. At any other text the silence is longer.
SHARED_SETTLE_SECONDS: Final = 0.25
GUESS_SETTLE_SECONDS: Final = 0.3
TEXT_SETTLE_SECONDS: Final = 1.5
MARGIN_SETTLE_SECONDS: Final = 10.0
"""For a program that takes lines for a peer and shows no text at all: the peer may as well work."""
ESCAPE_SETTLE_SECONDS: Final = 1.2
"""Programs hold a lone ESC for up to a second, as it may be the start of a key's sequence."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer of a look: the program runs, or it waits for input.

    ``kind`` and ``evidence`` are set exactly when it waits. ``prompt`` is the text left of the
    cursor, ``detail`` a text for people.
    """

    state: LiveState
    kind: PromptKind | None = None
    evidence: Evidence | None = None
    prompt: str = ""
    detail: str = ""

    @property
    def is_waiting(self) -> bool:
        """True if the program waits for input."""
        return self.state == "awaiting_input"


RUNNING: Final = Verdict("running")

ClaimKey = tuple[How, int, int, bool]
"""The way of waiting, the pid, the thread (0 for none), and whether the wait has a timeout."""


class Requirement(NamedTuple):
    """A claim that may be made once it has held for ``settle_seconds``.

    With zero seconds the claim may be made now, if the snapshot still holds.
    """

    waiter: Waiter
    evidence: Evidence
    settle_seconds: float
    by_silence: bool = False
    """Only the silence counts, not how long the waiter was seen: waking it changes its counter."""

    @property
    def key(self) -> ClaimKey:
        """A key that is equal for two looks if their requirements are one and the same claim."""
        waiter = self.waiter
        return waiter.how, waiter.pid, waiter.task.tid if waiter.task else 0, waiter.is_timed


class Context(NamedTuple):
    """Facts for a decision that come from input and output, not from the snapshot.

    ``likeness`` judges the text printed since the last input that completed a line, and ``line``
    the part of the text that is left of the cursor: modes of the terminal do not count there.
    """

    likeness: Callable[[], Likeness]
    line: Callable[[], Likeness]
    is_after_escape: bool
    is_editing: bool = False
    """A line editor switched bracketed paste on, and has printed something since the last input."""
    is_answered: bool = True
    """Something was printed since the last input, so the text is no question from before it."""


def requirement(snapshot: Snapshot, context: Context) -> Requirement | None:
    """Return the requirement for a claim that the program waits.

    None if the program does not wait, or if that cannot be known yet.
    """
    if snapshot.has_unread or snapshot.is_relaying:
        return None
    waiter = min(
        snapshot.waiters, key=lambda candidate: (candidate.how, candidate.is_timed), default=None
    )
    if waiter is None:
        return _guess(snapshot, context) if snapshot.is_unreachable else None
    if snapshot.inner_device and not snapshot.is_asleep:
        return None
    return _needed_for(waiter, snapshot, context)


def _needed_for(waiter: Waiter, snapshot: Snapshot, context: Context) -> Requirement | None:
    if waiter.is_proven and not any(_is_beside_work(each) for each in waiter.behind):
        return _proven(snapshot, context, waiter)
    if _is_beside_work(waiter) and not _edits_in_shell(snapshot, waiter):
        return _beside_work(snapshot, context, waiter)
    if waiter.how >= How.WOKEN or (waiter.is_loop and snapshot.has_workers):
        return _shared(snapshot, context, waiter)
    return _own(snapshot, context, waiter)


def _is_beside_work(waiter: Waiter) -> bool:
    """Return whether the program may work, of which the waiter is only a part.

    A process that waits for the terminal alone goes on with input alone, whatever it has started.
    A shell does not wait for its jobs: it reports the end of one and goes on waiting.
    """
    company = waiter.company
    if company.parents is Occupation.RUNNING or waiter.is_beside_work:
        return True
    if not waiter.is_one_of_several:
        return False
    # A thread that pauses now and then keeps house, unless an event loop waits for it.
    at_work = Occupation.PAUSING if waiter.listens_elsewhere else Occupation.WORKING
    return (
        company.threads >= at_work
        or company.first_thread > Occupation.RESTING
        or company.has_detached_child
        or (company.children > Occupation.RESTING and not is_named_as_shell(waiter.comm))
    )


def _edits_in_shell(snapshot: Snapshot, waiter: Waiter) -> bool:
    """Return whether a shell edits a line, to which it goes back after all else.

    Shells set the modes back before they run a program.
    """
    flags = snapshot.flags
    return is_named_as_shell(waiter.comm) and flags is not None and not flags.is_canonical


def _beside_work(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement | None:
    """Return the requirement for a claim beside work that the claim may interrupt.

    A first thread in a plain read is mostly the program itself, and the work is an addition. In all
    other cases the program asks a question, or it works.
    """
    is_main = waiter.how is How.READ and waiter.task is not None and waiter.task.is_first
    is_main = is_main and not waiter.listens_elsewhere
    if not is_main and _likeness(snapshot, context) is not Likeness.PROMPT:
        return None
    return Requirement(waiter, "heuristic", TEXT_SETTLE_SECONDS)


def _proven(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement:
    """Return the requirement for a multiplexer whose programs all wait for input.

    The multiplexer may still draw what they printed.
    """
    settle = SHARED_SETTLE_SECONDS if snapshot.has_workers else PATIENT_SETTLE_SECONDS
    if context.is_after_escape:
        settle = ESCAPE_SETTLE_SECONDS
    return Requirement(waiter, "kernel+quiet" if snapshot.has_workers else "kernel", settle)


def _own(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement:
    is_polling = snapshot.is_polling
    is_timed = waiter.is_timed or is_polling
    evidence: Evidence = "kernel"
    settle = 0.0 if waiter.task or snapshot.blind else OUTSIDER_SETTLE_SECONDS
    if snapshot.is_relay_opaque:
        evidence = "kernel+quiet"
        settle = max(settle, OPAQUE_RELAY_SETTLE_SECONDS)
    if is_timed or snapshot.is_busy:
        evidence = "kernel+quiet"
        is_patient = (
            (waiter.timeout_seconds or 0.0) >= PATIENT_SECONDS
            and not is_polling
            and not snapshot.is_busy
        )
        settle = max(settle, PATIENT_SETTLE_SECONDS if is_patient else SHARED_SETTLE_SECONDS)
        if not is_patient:
            settle = max(settle, _timeout_to_outlast(snapshot, context, waiter))
    # A program that holds the ESC back sleeps with a short timeout. After that the ESC counts as a
    # key of its own.
    is_impatient = is_polling or (
        waiter.timeout_seconds is not None and waiter.timeout_seconds <= ESCAPE_SETTLE_SECONDS
    )
    if context.is_after_escape and is_impatient:
        settle = max(settle, ESCAPE_SETTLE_SECONDS)
    return Requirement(waiter, evidence, settle)


def _timeout_to_outlast(snapshot: Snapshot, context: Context, waiter: Waiter) -> float:
    """Return the silence after which a wait with a short timeout was taken up again; or 0.

    A program may look at the keyboard for a moment on its way to something else: a line editor
    shows the matching bracket, a relay lets its last bytes pass. At a new prompt it is not on its
    way. That an editor is at work proves nothing: it may have the rest of the input already.
    """
    timeout = waiter.timeout_seconds or 0.0
    if timeout <= SHARED_SETTLE_SECONDS or timeout >= PATIENT_SECONDS:
        return 0.0
    is_secret = snapshot.flags is not None and snapshot.flags.is_secret
    is_prompt = context.is_answered and (is_secret or context.line() is Likeness.PROMPT)
    return 0.0 if is_prompt else timeout + OUTLAST_SECONDS


def _shared(snapshot: Snapshot, context: Context, waiter: Waiter) -> Requirement | None:
    likeness = _likeness(snapshot, context)
    if likeness is Likeness.NONE:
        return _at_margin(snapshot, waiter)
    is_prompt = likeness is Likeness.PROMPT
    settle = SHARED_SETTLE_SECONDS if is_prompt else TEXT_SETTLE_SECONDS
    is_shell = _edits_in_shell(snapshot, waiter)
    if is_prompt and not is_shell and waiter.is_timed and not context.is_answered:
        return _after_silent_input(waiter)
    if is_prompt and (is_shell or _is_left_alone(snapshot, context, waiter)):
        settle = PATIENT_SETTLE_SECONDS
    if context.is_after_escape:
        settle = max(settle, ESCAPE_SETTLE_SECONDS)
    is_known = is_prompt and (is_shell or not waiter.is_foreign)
    return Requirement(
        waiter,
        "kernel+quiet" if is_known else "heuristic",
        settle,
        by_silence=waiter.how is How.WOKEN,
    )


def _after_silent_input(waiter: Waiter) -> Requirement:
    # The question on the line is older than the input, which may have set a timer to work on.
    timeout = waiter.timeout_seconds or 0.0
    if 0.0 < timeout < PATIENT_SECONDS:
        settle = max(SHARED_SETTLE_SECONDS, timeout + OUTLAST_SECONDS)
        return Requirement(waiter, "kernel+quiet", settle)
    return Requirement(waiter, "heuristic", TEXT_SETTLE_SECONDS)


def _at_margin(snapshot: Snapshot, waiter: Waiter) -> Requirement | None:
    # A client such as telnet passes lines on to a peer that may say nothing until it gets one.
    takes_lines = snapshot.flags is not None and snapshot.flags.is_canonical
    if not (takes_lines and waiter.is_foreign and waiter.how is How.MIXED):
        return None
    return Requirement(waiter, "heuristic", MARGIN_SETTLE_SECONDS)


def _is_left_alone(snapshot: Snapshot, context: Context, waiter: Waiter) -> bool:
    # True if only a timer can still set this event loop to work, and the timer is far off, or
    # belongs to a line editor, which waits for input all the same.
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
