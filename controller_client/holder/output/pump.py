"""Decides when output and verdicts of a session leave, and when its program is paused.

Output waits up to COALESCE_SECONDS for more output, unless the program waits for input: then
everything leaves at once, with the verdict on the last frame. While the server takes output, a
backlog of half the ring pauses the program instead of losing bytes.
"""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from controller_client.protocol.limits import COALESCE_SECONDS, MAX_CHUNK_BYTES
from controller_client.protocol.messages import (
    Gap,
    HostTime,
    InteractiveOutput,
    IoMode,
    OverflowPolicy,
    Stream,
    TerminalReport,
)
from controller_client.protocol.resume import OutputSender

STREAMS: Final[dict[IoMode, list[Stream]]] = {"pty": ["stdout"], "pipe": ["stdout", "stderr"]}
"""The output streams of a program. The first one carries the verdicts."""
STALLED_SECONDS = 10.0
"""After so long without an acknowledgement, the server counts as not taking output.

A busy database may commit nothing for seconds, and no output is to be lost for that. A connection
that died is detached.
"""
DETAIL_SECONDS = 1.0
"""Between two reports of other details of a program that keeps running."""
_READ_BATCH_BYTES = 64 * 1024


class OutputPump:
    """Sits between the program's streams and the link to the daemon.

    ``now`` is monotonic seconds.
    """

    def __init__(
        self, session_id: str, streams: list[Stream], *, ring_bytes: int, overflow: OverflowPolicy
    ) -> None:
        self.sender = OutputSender(session_id=session_id, streams=streams, ring_bytes=ring_bytes)
        self._session_id = session_id
        self._ring_bytes = ring_bytes
        self._may_drop = overflow == "truncate"
        self._main_stream = streams[0]
        self._unsent_since: float | None = None
        self._is_urgent = False
        self._is_window_full = False
        self._progress_at = 0.0
        self.unrecorded_since: float | None = None
        """Since when the server has committed none of its backlog; None without a backlog."""
        self._reported: TerminalReport | None = None
        self._report: TerminalReport | None = None
        # When each of the two verdicts was made.
        self._reported_at: HostTime | None = None
        self._report_at: HostTime | None = None
        self._report_due = 0.0

    # ---- from the program

    def produce(self, stream: Stream, data: bytes, now: float, at: HostTime | None = None) -> None:
        """Take ``data``, which the program wrote ``at`` this moment."""
        if not self.sender.backlog_bytes:
            # There was nothing to acknowledge, so the server is not late yet.
            self._progress_at = self.unrecorded_since = now
        self.sender.produce(stream, data, at)
        if self._unsent_since is None:
            self._unsent_since = now
        if self._report is not None and self._report.state == "awaiting_input":
            # This verdict is older than these bytes, and it never left: forget it.
            self._report = None

    @property
    def produced_bytes(self) -> int:
        """Length of the stream that carries the verdicts."""
        return self.sender.next_offset(self._main_stream)

    def read_budget(self, now: float) -> int:
        """Return how many bytes may be read from the program now; 0 pauses the program."""
        backlog = self.sender.backlog_bytes
        if not self._may_drop:
            return max(0, min(_READ_BATCH_BYTES, self._ring_bytes - backlog))
        if backlog * 2 > self._ring_bytes and self._is_being_taken(now):
            return 0
        return _READ_BATCH_BYTES

    def report(
        self,
        report: TerminalReport,
        now: float,
        *,
        at: HostTime | None = None,
        at_once: bool = False,
    ) -> None:
        """Take a verdict. Waiting is sent at once; running after a moment, unless ``at_once``.

        Other details of a program that keeps running are sent after DETAIL_SECONDS.
        """
        last = self._reported
        if report == last:
            self._report = None
            return
        if self._report is not None and report == self._report:
            return
        if report.state == "awaiting_input":
            self._report_due = now
        elif self._report is None or self._report.state == "awaiting_input":
            is_news = last is None or last.state == "awaiting_input"
            if not is_news and last is not None and report.detail == last.detail:
                return
            self._report_due = now + (COALESCE_SECONDS if is_news else DETAIL_SECONDS)
        self._report, self._report_at = report, at
        if at_once:
            self._report_due = now

    def flush(self) -> None:
        """Let everything that was produced so far leave without waiting for more."""
        self._is_urgent = True

    # ---- from the server

    def attach(self, expected: Mapping[Stream, int], window_bytes: int, now: float) -> None:
        """Send from these offsets on.

        Raises LocalProtocolError for an offset that was never reached.
        """
        backlog = self.sender.backlog_bytes
        self.sender.attach(expected, window_bytes)
        self._note_recorded(backlog, now)
        self._progress_at = now
        self._is_window_full = False
        self._is_urgent = True
        if self._report is None and not self._is_outdated(self._reported):
            self._report, self._report_at = self._reported, self._reported_at
        self._report_due = now
        self._reported = None

    def detach(self) -> None:
        """Stop sending, and keep everything: nobody listens."""
        self.sender.detach()

    def acknowledge(self, stream: Stream, offset: int, now: float) -> None:
        """Note that the server has everything before ``offset``. Raises AckAhead."""
        backlog = self.sender.backlog_bytes
        self.sender.acknowledge(stream, offset)
        if self.sender.backlog_bytes != backlog:
            self._progress_at = now
            self._note_recorded(backlog, now)
            self._is_window_full = False

    # ---- to the server

    def frames(self, now: float) -> Iterator[InteractiveOutput | Gap]:
        """Yield what is to be sent now.

        The caller may stop at any frame, and come back for the rest.
        """
        if not self.sender.is_attached or not self._is_due(now):
            return
        while (frame := self.sender.next_frame()) is not None:
            yield self._with_report(frame)
        self._is_window_full = not self.sender.is_drained
        if self._is_window_full:
            return
        self._unsent_since = None
        self._is_urgent = False
        if self._report is not None and now >= self._report_due:
            yield self._verdict_frame(self._report)

    def deadline(self, now: float, *, has_room: bool = True) -> float | None:
        """Return when ``frames`` or ``read_budget`` changes although nothing happens.

        Without ``has_room`` no frame can leave.
        """
        times: list[float] = []
        if has_room and self.sender.is_attached and not self._is_window_full:
            if self._unsent_since is not None:
                times.append(now if self._is_urgent else self._unsent_since + COALESCE_SECONDS)
            if self._report is not None:
                times.append(self._report_due)
        if self._may_drop and self.read_budget(now) == 0:
            times.append(self._progress_at + STALLED_SECONDS)
        return min(times, default=None)

    def _note_recorded(self, backlog: int, now: float) -> None:
        """Note progress of the server, which lacked ``backlog`` bytes before."""
        if self.sender.backlog_bytes < backlog:
            self.unrecorded_since = now if self.sender.backlog_bytes else None

    def _is_outdated(self, report: TerminalReport | None) -> bool:
        """Return whether the verdict says that the program waits, and it has written since."""
        return (
            report is not None
            and report.state == "awaiting_input"
            and report.offset < self.produced_bytes
        )

    def _is_being_taken(self, now: float) -> bool:
        return self.sender.is_attached and now < self._progress_at + STALLED_SECONDS

    def _is_due(self, now: float) -> bool:
        if self._is_urgent or self.sender.unsent_bytes >= MAX_CHUNK_BYTES:
            return True
        if self._unsent_since is not None and now >= self._unsent_since + COALESCE_SECONDS:
            return True
        return self._report is not None and now >= self._report_due

    def _with_report(self, frame: InteractiveOutput | Gap) -> InteractiveOutput | Gap:
        """Put the verdict on the frame of the last bytes that it is about."""
        report = self._report
        if report is None or not isinstance(frame, InteractiveOutput) or not self.sender.is_drained:
            return frame
        self._sent(report)
        return msgspec.structs.replace(frame, terminal=report, terminal_at=self._reported_at)

    def _verdict_frame(self, report: TerminalReport) -> InteractiveOutput:
        self._sent(report)
        return InteractiveOutput(
            session_id=self._session_id,
            stream=self._main_stream,
            offset=self.produced_bytes,
            seq=self.sender.verdict_seq(),
            terminal=report,
            terminal_at=self._reported_at,
        )

    def _sent(self, report: TerminalReport) -> None:
        self._reported, self._report = report, None
        self._reported_at = self._report_at
