"""The watcher of one session, which decides whether a program on a terminal waits for input.

Theory of operation
-------------------

Whoever owns the terminal's master side tells the watcher of every output, input and resize, and
calls :meth:`TerminalWatcher.look` when the delay is over that the last look returned. The watcher
has no thread and no timer of its own.

A look takes a *snapshot*: which tasks of the program's process tree sleep, and in which system
calls. A task that sleeps in a read of this terminal is evidence from the kernel; text that looks
like a prompt is only used where the kernel cannot be asked. ``decision.requirement`` turns the
snapshot and the text into a *requirement*: the waiter, the evidence, and how long the program
must have been silent. "Awaiting input" is claimed only if all of these hold, and they are checked
in this order:

1. The output has paused. In a flood nothing is looked at (``look``).
2. The input has been read, and the waiter has run since it was written. Otherwise a reader would
   count that still sleeps from before the input (``_has_run_since_input``, ``InputReach``).
3. The snapshot meets a requirement, and has met the same one for as long as it asks for
   (``Ripening``).
4. The master is empty. Output that is still on its way belongs to the answer (``_confirm``).
5. The tasks of the snapshot have not run since it was taken: the evidence outlived the check. Of
   a wait that ends by itself again and again, a second snapshot has to find the next.

A claim stands until something happens: output, input or a resize. Each of them makes the program
"running" again and takes the looks back to short delays. A cursor that blinks is no such event.
While nothing happens, a claim stands as long as its waiter has not run, whatever background jobs do
(``_is_claimed``).

Looks are cheap when nothing has moved. A snapshot is used again while no task of it has run
(``_current_snapshot``), and the delays between looks grow with the silence (``BackOff``). Two
kinds of look are expensive and therefore rare:

* Readers outside the process tree, and readers in it that wait for a signal, are searched for among
  all processes, at most once a second and less often as the silence grows (``_search``).
* Some tasks may not be inspected, such as those of another user. To find out whether they wait,
  every task that is blocked on the terminal is woken. A task that has run by the next look was
  blocked on it (``_wake_if_due``).

Processes come and go while ``/proc`` is read. The errors of that (``VANISHED``) void the look, and
the next look follows soon: a verdict never rests on half a snapshot.
"""

import math
import os
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from controller_client.protocol.limits import MAX_DETAIL_CHARS, MAX_PROMPT_CHARS
from controller_client.terminal_state.back_off import BackOff
from controller_client.terminal_state.decision import (
    RUNNING,
    ClaimKey,
    Context,
    Requirement,
    Verdict,
    requirement,
)
from controller_client.terminal_state.flags_probe import probe_of
from controller_client.terminal_state.input_reach import InputReach, ends_line
from controller_client.terminal_state.kernel.occupation import activity_of
from controller_client.terminal_state.kernel.outsiders import holders_of, signalled_of
from controller_client.terminal_state.kernel.proc_file import VANISHED
from controller_client.terminal_state.kernel.process_table import Counters
from controller_client.terminal_state.kernel.snapshot import Options, Snapshot
from controller_client.terminal_state.kernel.terminal_device import Flags, read_flags
from controller_client.terminal_state.prompt.blinking import Blinking
from controller_client.terminal_state.prompt.kind import Known, prompt_kind
from controller_client.terminal_state.prompt.line_echo import LineEcho
from controller_client.terminal_state.prompt.memory import PromptMemory
from controller_client.terminal_state.prompt.output_modes import OutputModes
from controller_client.terminal_state.prompt.text import Likeness, likeness
from controller_client.terminal_state.reader import Reader, find_reader, others_may_read
from controller_client.terminal_state.ripening import Ripening

RETRY_SECONDS: Final = 0.003
WAKE_AFTER_SECONDS: Final = 0.15
WOKEN_SECONDS: Final = 0.05
"""A later look after waking the sleepers proves nothing: a task may have run for another reason."""
SEARCH_AFTER_SECONDS: Final = 0.2
DETAIL_AFTER_SECONDS: Final = 0.02


class TerminalWatcher:
    """The decision whether the program behind a PTY waits for input.

    Single-threaded. ``look`` never blocks and never raises.
    """

    def __init__(
        self, master_fd: int, leader_pid: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._master = master_fd
        self._clock = clock
        self._probe = probe_of(master_fd, leader_pid)
        self._modes = OutputModes()
        self._blinking = Blinking()
        self._echo = LineEcho()
        self._memory = PromptMemory()
        self._back_off = BackOff()
        self._reach = InputReach()
        # The time of the last event (output, input or resize), and of the last input.
        self._changed_at = clock()
        self._input_at = -math.inf
        self._is_after_escape = False
        # The last snapshot; None after an event, or if it turned out to be void.
        self._snapshot: Snapshot | None = None
        self._ripening = Ripening()
        # The last verdict, and the claim behind it with the run counter of its waiter.
        self._standing = RUNNING
        self._claimed: tuple[ClaimKey, bytes] | None = None
        # Readers outside the tree, and readers that wait for a signal, by the last search.
        self._outsiders: list[int] = []
        self._signalled: list[int] = []
        # Counters from right before the sleepers were woken, until a look has used them.
        self._woken: Counters | None = None
        self._woken_at = -math.inf
        self._next_wake = self._next_search = 0.0

    # ---- events ----------------------------------------------------------------------------------

    def on_output(self, data: bytes) -> bytes:
        """Take output, and return the bytes to type in answer to the terminal queries in it.

        Each query is answered once.
        """
        self._back_off.on_output()
        answers = self._modes.feed(data)
        is_full = self._modes.is_alternate_screen
        may_blink = is_full or self._modes.is_cursor_hidden
        if may_blink and self._blinking.goes_on(data, self._clock(), is_full_screen=is_full):
            self._snapshot = None
        else:
            self._happened()
        self._echo.on_output(data)
        return answers

    def before_input(self, data: bytes) -> None:
        """To be called right before ``data`` is written to the master."""
        flags = self._flags()
        is_raw = flags is not None and not flags.is_canonical
        is_whole_line = ends_line(data, is_raw=is_raw)
        self._before_event(wakes_readers=flags is None or is_raw or is_whole_line)
        self._input_at = self._changed_at
        self._is_after_escape = data.endswith(b"\x1b")
        self._echo.before_input(data if is_raw else b"")
        if is_whole_line:
            self._modes.forget_text()
            self._memory.on_line()

    def before_resize(self) -> None:
        """To be called right before the size changes.

        A program that draws has to run, and to draw again, before it counts as waiting.
        """
        self._before_event(wakes_readers=True)

    def _before_event(self, *, wakes_readers: bool) -> None:
        self._back_off.on_input()
        self._blinking.forget()
        self._happened()
        self._reach.before_event(self._changed_at, self._probe.table, wakes_readers=wakes_readers)

    def reset(self) -> None:
        """Go back to the shortest delay between looks."""
        self._back_off.reset()

    def _happened(self) -> None:
        self._changed_at = self._clock()
        self._snapshot = self._woken = None
        self._ripening.forget()
        self._standing = RUNNING
        self._next_wake = self._next_search = 0.0

    # ---- questions -------------------------------------------------------------------------------

    @property
    def application_cursor(self) -> bool:
        """True if cursor keys are to be sent in their application form."""
        return self._modes.is_application_cursor

    def is_canonical(self) -> bool:
        """Return whether the terminal takes whole lines now."""
        flags = self._flags()
        return flags is not None and flags.is_canonical

    def reader(self) -> Reader | None:
        """Return the reader that would get input now; None if no process is proven to wait.

        This is a look of its own, whatever was claimed before.
        """
        self._snapshot = None
        reader = find_reader(self._probe, self._master)
        if reader is not None and reader.is_relayed and not self._has_question():
            return replace(reader, is_hidden=False)
        return reader

    def _has_question(self) -> bool:
        # Relays such as ``unbuffer -p`` hide input from the start. Without a question on the line
        # of the cursor, hidden input is no sign of a secret.
        return bool(self._modes.line.strip())

    def is_read_by_others(self, pid: int) -> bool:
        """Return whether a process other than ``pid`` may wait for the terminal.

        To be called right after ``reader``. Raises OSError if that cannot be found out.
        """
        return others_may_read(self._probe, pid)

    def _flags(self) -> Flags | None:
        try:
            return read_flags(self._master)
        except OSError:
            return None

    def close(self) -> None:
        """Release every descriptor; the master stays the caller's."""
        self._probe.close()

    # ---- the look --------------------------------------------------------------------------------

    def look(self, drain: Callable[[], bool]) -> tuple[Verdict, float | None]:
        """Return the verdict now, and the seconds until the next look if no event comes first.

        ``drain`` reads the master until it is empty, feeds ``on_output``, and returns whether any
        output came.
        """
        now = self._clock()
        quiet = now - self._changed_at
        pause = self._back_off.pause_after_output()
        if quiet < pause:
            return RUNNING, pause - quiet
        try:
            return self._look(drain, now, quiet)
        except VANISHED:
            self._snapshot, self._standing = None, RUNNING
            self._ripening.forget()
            return RUNNING, max(RETRY_SECONDS, self._back_off.next_delay(quiet))

    def _look(
        self, drain: Callable[[], bool], now: float, quiet: float
    ) -> tuple[Verdict, float | None]:
        snapshot = self._current_snapshot(now, quiet)
        needed = self._needed(snapshot, now)
        ripens_in = self._ripening.seconds_left(needed, now, quiet)
        if needed is not None and self._is_claimed(needed):
            return self._standing, self._next_waiting_delay()
        if needed is not None and ripens_in <= 0.0:
            return self._confirm(snapshot, needed, drain, quiet)
        delay = self._back_off.next_delay(quiet)
        if needed is not None:
            delay = min(delay, ripens_in)
        if self._woken is not None:
            delay = min(delay, RETRY_SECONDS)
        self._standing = self._running(snapshot, quiet)
        return self._standing, delay

    def _confirm(
        self, snapshot: Snapshot, needed: Requirement, drain: Callable[[], bool], quiet: float
    ) -> tuple[Verdict, float | None]:
        """Check the last two conditions of a claim: empty master, tasks that have not run."""
        if drain():
            return RUNNING, self._back_off.pause_after_output()
        if not snapshot.still_holds() and (not self._is_met_again(snapshot, needed) or drain()):
            self._snapshot, self._standing = None, RUNNING
            return RUNNING, self._back_off.next_delay(quiet)
        if needed.evidence == "kernel" and not self._probe.is_whole(snapshot):
            self._snapshot, self._standing = None, RUNNING
            return RUNNING, RETRY_SECONDS
        self._back_off.on_claim()
        self._claimed = (needed.key, needed.waiter.counter)
        self._standing = self._awaiting(snapshot, needed)
        return self._standing, self._next_waiting_delay()

    def _needed(self, snapshot: Snapshot, now: float) -> Requirement | None:
        may_wait = snapshot.waiters or snapshot.is_unreachable
        if not may_wait or not self._has_run_since_input(snapshot, now):
            return None
        context = Context(
            self._likeness,
            self._likeness_of_line,
            self._is_after_escape,
            self._is_editing(),
            self._has_answer(),
        )
        return requirement(snapshot, context)

    def _is_met_again(self, snapshot: Snapshot, needed: Requirement) -> bool:
        """Return whether a second look finds the same wait of limited time taken up again."""
        if not needed.settle_seconds or not (needed.waiter.is_timed or snapshot.is_polling):
            return False
        now = self._clock()
        again = self._needed(self._probe.look(Options(self._outsiders)), now)
        is_same = again is not None and again.key == needed.key
        return is_same and not self._ripening.has_worked(needed.waiter, now)

    def _next_waiting_delay(self) -> float:
        return self._back_off.next_waiting_delay(is_proven=self._standing.evidence == "kernel")

    def _is_claimed(self, needed: Requirement) -> bool:
        # An equal claim stands, whatever a background job does meanwhile.
        return self._standing.is_waiting and self._claimed == (needed.key, needed.waiter.counter)

    def _current_snapshot(self, now: float, quiet: float) -> Snapshot:
        """Return the last snapshot while no task has run since, else a new one."""
        last = self._snapshot
        if last is not None:
            has_outsiders = not last.waiters and self._search(now, quiet)
            is_usable = last.is_settled and not has_outsiders and self._woken is None
            if is_usable and self._probe.table.is_unmoved():
                return self._wake_if_due(last, now, quiet)
        woken = self._woken if now - self._woken_at < WOKEN_SECONDS else None
        options = Options(self._outsiders, self._signalled, woken)
        self._woken = None
        self._snapshot = self._probe.look(options, is_hasty=quiet < DETAIL_AFTER_SECONDS)
        return self._snapshot

    def _search(self, now: float, quiet: float) -> bool:
        """Look for readers outside the tree if that is due, and return whether there are any."""
        if quiet <= SEARCH_AFTER_SECONDS or now < self._next_search or self._probe.identity is None:
            return False
        self._next_search = now + max(1.0, quiet)
        pids = [process.pid for process in self._probe.table.processes]
        self._outsiders = holders_of(self._probe.identity, {*pids, os.getpid()})
        self._signalled = signalled_of(self._probe.identity, pids)
        return bool(self._outsiders or self._signalled)

    def _wake_if_due(self, last: Snapshot, now: float, quiet: float) -> Snapshot:
        """Wake every task blocked on the terminal, if that is due; return the last snapshot."""
        is_due = quiet > WAKE_AFTER_SECONDS and now >= self._next_wake
        if is_due and last.blind and not last.waiters and not last.is_unreachable:
            self._next_wake = now + max(0.25, quiet / 4)
            self._woken, self._woken_at = self._probe.wake(), now
        return last

    def _has_answer(self) -> bool:
        return self._changed_at > self._input_at

    def _is_editing(self) -> bool:
        is_editor = self._modes.is_bracketed_paste and not self._modes.is_alternate_screen
        return is_editor and self._has_answer()

    def _likeness(self) -> Likeness:
        if self._has_answer() and self._modes.is_input_screen:
            return Likeness.PROMPT
        return self._likeness_of_line()

    def _likeness_of_line(self) -> Likeness:
        return likeness(self._modes.line)

    def _has_run_since_input(self, snapshot: Snapshot, now: float) -> bool:
        return self._reach.has_reached(snapshot.concerned, now)

    # ---- verdicts --------------------------------------------------------------------------------

    def _awaiting(self, snapshot: Snapshot, needed: Requirement) -> Verdict:
        waiter = needed.waiter
        # A full screen has no prompt, and drawing all of it takes a while.
        asked = "" if self._modes.is_alternate_screen else self._modes.line
        flags = snapshot.flags
        if flags is not None and snapshot.inner_device and not self._has_question():
            flags = flags._replace(is_echoing=True)
        known = Known(
            self._echo.is_echoed(waiter.pid, asked or self._modes.drawn_question),
            self._memory.continued(waiter.pid, asked),
            self._memory.has_answered_shell(waiter.pid),
            draws_for_others=bool(waiter.behind),
        )
        kind = prompt_kind(flags, self._modes, waiter.comm, waiter.words, known)
        self._echo.on_claim(waiter.pid, asked or self._modes.drawn_question)
        self._memory.on_claim(waiter.pid, kind, asked)
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
        standing = self._standing
        is_current = snapshot is self._snapshot and not standing.is_waiting
        if standing.detail and is_current and self._probe.table.is_unmoved():
            return standing
        pgrp = os.tcgetpgrp(self._master)
        foreground = [process for process in self._probe.table.processes if process.pgrp == pgrp]
        activities = [activity_of(process) for process in foreground[:4]]
        if snapshot.has_unread:
            activities.insert(0, "input not read yet")
        elif any(waiter.is_shared for waiter in snapshot.waiters):
            activities.append("takes input, but listens elsewhere too")
        return Verdict("running", detail="; ".join(activities)[:MAX_DETAIL_CHARS])
