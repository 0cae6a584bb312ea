"""The watcher of one session: fed with output and input, asked now and then what the program does."""

import math
import os
import re
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from controller_client.protocol.limits import MAX_DETAIL_CHARS, MAX_PROMPT_CHARS
from controller_client.protocol.messages import Evidence, PromptKind
from controller_client.terminal_state.back_off import BackOff
from controller_client.terminal_state.decision import Context, Requirement, requirement
from controller_client.terminal_state.output_modes import OutputModes
from controller_client.terminal_state.outsiders import holders_of
from controller_client.terminal_state.probe import Options, Snapshot, TerminalProbe
from controller_client.terminal_state.process_table import Counters
from controller_client.terminal_state.prompt_kind import prompt_kind
from controller_client.terminal_state.prompt_text import Likeness, likeness
from controller_client.terminal_state.terminal_device import Flags, read_flags
from controller_client.terminal_state.waiter import activity_of

NOT_WOKEN_SECONDS: Final = 0.15
"""How long an input may go without anybody running before it counts as one that wakes nobody (an ignored ctrl-c)."""
RETRY_SECONDS: Final = 0.003
WAKE_AFTER_SECONDS: Final = 0.15
SEARCH_AFTER_SECONDS: Final = 0.2
DETAIL_AFTER_SECONDS: Final = 0.02
CLOCK_SECONDS: Final = 1e-6
"""What is left of a delay below this is rounding."""

_ENDS_LINE: Final = re.compile(rb"[\r\n\x03\x04\x1a\x1c]")
# What reading /proc can raise while the processes read about come and go.
_VANISHED: Final = (OSError, ValueError, IndexError, struct.error, OverflowError)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the program does. ``kind`` and ``evidence`` are set exactly when it waits for input."""

    state: Literal["running", "awaiting_input"]
    kind: PromptKind | None = None
    evidence: Evidence | None = None
    prompt: str = ""
    detail: str = ""

    @property
    def is_waiting(self) -> bool:
        """Whether the program waits for input."""
        return self.state == "awaiting_input"


RUNNING: Final = Verdict("running")


class TerminalWatcher:
    """Decides whether the program behind a PTY waits for input. Single-threaded; never blocks, never raises from ``look``."""

    def __init__(self, master_fd: int, leader_pid: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._master = master_fd
        self._clock = clock
        self._probe = TerminalProbe(master_fd, leader_pid)
        self._modes = OutputModes()
        self._back_off = BackOff()
        self._changed_at = clock()
        self._input_at = self._sent_at = -math.inf
        self._sent: Counters | None = None
        self._is_after_escape = False
        self._snapshot: Snapshot | None = None
        self._claim: tuple[object, float] | None = None
        self._claimed: tuple[object, bytes] | None = None
        self._standing = RUNNING
        self._outsiders: list[int] = []
        self._woken: Counters | None = None
        self._next_wake = self._next_search = 0.0

    # ---- what happens --------------------------------------------------------------------------------------------------

    def on_output(self, data: bytes) -> bytes:
        """Take output; the bytes to type in answer to the terminal queries in it, each answered once."""
        self._back_off.on_output()
        self._happened()
        return self._modes.feed(data)

    def before_input(self, data: bytes) -> None:
        """To be called right before ``data`` is written to the master: remembers who had run until then."""
        self._back_off.on_input()
        self._happened()
        self._input_at = self._sent_at = self._changed_at
        self._is_after_escape = data.endswith(b"\x1b")
        self._sent = None
        try:
            if _ENDS_LINE.search(data) or not read_flags(self._master).is_canonical:
                self._sent = self._probe.table.read_counters()
        except _VANISHED:
            pass
        if _ENDS_LINE.search(data):
            self._modes.forget_text()

    def before_resize(self) -> None:
        """To be called right before the size changes: a program that draws has run, and drawn again, before it counts as waiting."""
        self._back_off.on_input()
        self._happened()
        self._sent_at = self._changed_at
        self._sent = None
        with suppress(*_VANISHED):
            self._sent = self._probe.table.read_counters()

    def reset(self) -> None:
        """Back to the quick end of the back-off."""
        self._back_off.reset()

    def _happened(self) -> None:
        self._changed_at = self._clock()
        self._snapshot = self._claim = self._woken = None
        self._standing = RUNNING
        self._next_wake = self._next_search = 0.0

    # ---- what is asked -------------------------------------------------------------------------------------------------

    @property
    def application_cursor(self) -> bool:
        """Whether cursor keys are to be sent in their application form."""
        return self._modes.is_application_cursor

    def is_canonical(self) -> bool:
        """Whether the terminal takes whole lines now."""
        flags = self._flags()
        return flags is not None and flags.is_canonical

    def is_asking_for_secret(self) -> bool:
        """Whether the terminal, or the one behind a relay, takes a line without showing it now."""
        flags = self._flags()
        return (flags is not None and flags.is_secret) or self._standing.kind == "secret"

    def _flags(self) -> Flags | None:
        try:
            return read_flags(self._master)
        except OSError:
            return None

    def close(self) -> None:
        """Release every descriptor; the master stays the caller's."""
        self._probe.close()

    # ---- the look ------------------------------------------------------------------------------------------------------

    def look(self, drain: Callable[[], bool]) -> tuple[Verdict, float | None]:
        """The verdict now, and in how many seconds to look again unless something happens first.

        ``drain`` reads the master until it is empty, feeds ``on_output``, and says whether anything came.
        """
        now = self._clock()
        quiet = now - self._changed_at
        pause = self._back_off.pause_after_output()
        if quiet < pause:
            return RUNNING, pause - quiet
        try:
            return self._look(drain, now, quiet)
        except _VANISHED:
            self._snapshot = self._claim = None
            self._standing = RUNNING
            return RUNNING, max(RETRY_SECONDS, self._back_off.next_delay(quiet, is_waiting=False))

    def _look(self, drain: Callable[[], bool], now: float, quiet: float) -> tuple[Verdict, float | None]:
        snapshot = self._current_snapshot(now, quiet)
        context = Context(self._likeness, self._is_after_escape, self._is_editing())
        needed = requirement(snapshot, context) if self._has_run_since_input(snapshot, now) else None
        ripens_in = self._ripens_in(needed, now, quiet)
        if needed is not None and self._is_claimed(needed):
            return self._standing, self._back_off.next_delay(quiet, is_waiting=True)
        if needed is not None and ripens_in <= 0.0:
            return self._confirm(snapshot, needed, drain, quiet)
        delay = self._back_off.next_delay(quiet, is_waiting=False)
        if needed is not None:
            delay = min(delay, ripens_in)
        if self._woken is not None:
            delay = min(delay, RETRY_SECONDS)
        self._standing = self._running(snapshot, quiet)
        return self._standing, delay

    def _confirm(self, snapshot: Snapshot, needed: Requirement, drain: Callable[[], bool], quiet: float) -> tuple[Verdict, float | None]:
        """The last two conditions of a claim: nothing of the answer is still on its way, and the evidence outlived the check."""
        if drain():
            return RUNNING, self._back_off.pause_after_output()
        if not snapshot.still_holds():
            self._snapshot = None
            self._standing = RUNNING
            return RUNNING, self._back_off.next_delay(quiet, is_waiting=False)
        self._back_off.on_claim()
        self._claimed = (needed.key, needed.waiter.counter)
        self._standing = self._awaiting(snapshot, needed)
        return self._standing, self._back_off.next_delay(quiet, is_waiting=True)

    def _is_claimed(self, needed: Requirement) -> bool:
        """Whether this is what was claimed already: then it stands, whatever a background job does meanwhile."""
        return self._standing.is_waiting and self._claimed == (needed.key, needed.waiter.counter)

    def _current_snapshot(self, now: float, quiet: float) -> Snapshot:
        """The last snapshot while nobody ran since, else a new one."""
        last = self._snapshot
        is_unmoved = last is not None and self._probe.is_unmoved()
        is_slow_due = last is not None and not last.waiters and self._search(now, quiet)
        if last is not None and last.is_settled and is_unmoved and not is_slow_due and self._woken is None:
            return self._wake_if_due(last, now, quiet)
        options = Options(self._outsiders, self._woken)
        self._woken = None
        self._snapshot = self._probe.look(options, is_hasty=quiet < DETAIL_AFTER_SECONDS)
        return self._snapshot

    def _search(self, now: float, quiet: float) -> bool:
        """Look for readers outside the tree, seldom, and more seldom as time goes by; whether there are any."""
        if quiet <= SEARCH_AFTER_SECONDS or now < self._next_search or self._probe.identity is None:
            return False
        self._next_search = now + max(1.0, quiet)
        skip = {process.pid for process in self._probe.table.processes} | {os.getpid()}
        self._outsiders = holders_of(self._probe.identity, skip)
        return bool(self._outsiders)

    def _wake_if_due(self, last: Snapshot, now: float, quiet: float) -> Snapshot:
        """Wake who sleeps on the terminal, while nobody ran: then whoever has run by the next look sleeps on it."""
        is_due = quiet > WAKE_AFTER_SECONDS and now >= self._next_wake
        if is_due and last.blind and not last.waiters and not last.is_unreachable:
            self._next_wake = now + max(0.25, quiet / 4)
            self._woken = self._probe.wake()
        return last

    def _has_answer(self) -> bool:
        return self._changed_at > self._input_at

    def _is_editing(self) -> bool:
        return self._has_answer() and self._modes.is_bracketed_paste and not self._modes.is_alternate_screen

    def _likeness(self) -> Likeness:
        modes = self._modes
        return Likeness.PROMPT if self._has_answer() and modes.is_input_screen else likeness(modes.line)

    def _has_run_since_input(self, snapshot: Snapshot, now: float) -> bool:
        """Whether the input has reached the waiter; without this a reader still asleep from before it would count."""
        sent = self._sent
        if sent is None or now - self._sent_at >= NOT_WOKEN_SECONDS:
            return True
        return any(sent.get(task.tid) != task.counter for task in snapshot.concerned)

    def _ripens_in(self, needed: Requirement | None, now: float, quiet: float) -> float:
        if needed is None:
            self._claim = None
            return 0.0
        if self._claim is None or self._claim[0] != needed.key:
            self._claim = (needed.key, now)
        held = quiet if needed.by_silence else min(quiet, now - self._claim[1])
        left = needed.settle_seconds - held
        return left if needed.settle_seconds and left > CLOCK_SECONDS else 0.0

    # ---- words ---------------------------------------------------------------------------------------------------------

    def _awaiting(self, snapshot: Snapshot, needed: Requirement) -> Verdict:
        waiter = needed.waiter
        kind = prompt_kind(snapshot.flags, self._modes, waiter.comm, waiter.pid)
        if kind in {"line", "shell"}:
            self._modes.forget_drawing()
        detail = waiter.describe()
        if snapshot.inner_device:
            detail += f" on inner pts/{os.minor(snapshot.inner_device)}"
        # On a full screen the last line printed is not the line of the cursor.
        is_screen = kind == "screen" or self._modes.is_drawn
        prompt = "" if is_screen else self._modes.line[-MAX_PROMPT_CHARS:]
        return Verdict("awaiting_input", kind, needed.evidence, prompt, detail[:MAX_DETAIL_CHARS])

    def _running(self, snapshot: Snapshot, quiet: float) -> Verdict:
        if quiet < DETAIL_AFTER_SECONDS:
            return RUNNING
        if self._standing.detail and snapshot is self._snapshot and not self._standing.is_waiting and self._probe.is_unmoved():
            return self._standing
        foreground = [process for process in self._probe.table.processes if process.pgrp == os.tcgetpgrp(self._master)]
        activities = [activity_of(process) for process in foreground[:4]]
        if snapshot.has_unread:
            activities.insert(0, "input not read yet")
        elif any(waiter.is_shared for waiter in snapshot.waiters):
            activities.append("takes input, but listens elsewhere too")
        return Verdict("running", detail="; ".join(activities)[:MAX_DETAIL_CHARS])
