"""A simulated holder with its program.

It never crashes, so it also knows what was really produced and typed.
"""

from typing import TYPE_CHECKING, Final

from controller_client.protocol.codec import decode_to_holder
from controller_client.protocol.messages import (
    Ack,
    DoneAck,
    HolderAttach,
    HolderDetach,
    InputAck,
    InteractiveCmdDone,
    Message,
    SendInput,
    SessionSummary,
    Started,
    StartInteractiveCmd,
    Stream,
)
from controller_client.protocol.resume import InputSequencer, OutputSender
from tests.support.simulation.link import Link
from tests.support.simulation.scheduler import Scheduler

if TYPE_CHECKING:
    from tests.support.simulation.plan import SessionPlan

_STEP_SECONDS: Final = 0.05
_INPUT_SECONDS: Final = 0.2


class SimulatedHolder:
    """Produces the plan's output, applies inputs, and ends when both are finished."""

    def __init__(
        self, scheduler: Scheduler, start: StartInteractiveCmd, plan: "SessionPlan"
    ) -> None:
        self._scheduler = scheduler
        self._start = start
        self._plan = plan
        self.sender = OutputSender(
            session_id=start.session_id, streams=plan.streams, ring_bytes=start.ring_bytes
        )
        self.inputs = InputSequencer()
        self.production: list[tuple[Stream, bytes]] = []
        self.applied: list[bytes] = []
        self.is_forgotten = False
        self._left = list(plan.output)
        self._blocked_inputs: list[SendInput] = []
        self._is_done_sent = False
        self._to_daemon: Link | None = None
        self._schedule_step()

    @property
    def has_ended(self) -> bool:
        return not self._left and len(self.applied) == len(self._plan.inputs)

    def produced(self, stream: Stream) -> bytes:
        return b"".join(data for name, data in self.production if name == stream)

    def summary(self) -> SessionSummary:
        return SessionSummary(
            session_id=self._start.session_id,
            state="done" if self.has_ended else "running",
            streams=self.sender.positions(),
            input_seq=self.inputs.settled,
        )

    def connect(self, to_daemon: Link) -> None:
        """Take a new daemon's connection, in place of the one before."""
        self.sender.detach()
        self._to_daemon = to_daemon

    def receive(self, frame: bytes, answer_to: Link) -> None:
        if answer_to is not self._to_daemon:
            return  # From a daemon that was replaced.
        match decode_to_holder.decode(frame):
            case HolderAttach() as attach:
                self._attach(attach)
            case HolderDetach():
                self.sender.detach()
            case Ack(offsets=offsets):
                for each in offsets:
                    self.sender.acknowledge(each.stream, each.offset)
            case SendInput() as message:
                self._on_input(message)
            case DoneAck():
                assert self.has_ended, "the end was acknowledged before it came"
                self.is_forgotten = True
        self._pump()

    def _attach(self, attach: HolderAttach) -> None:
        self.sender.attach(
            {each.stream: each.offset for each in attach.offsets}, attach.window_bytes
        )
        self._is_done_sent = False
        self._send(Started(session_id=self._start.session_id, command_seq=self._start.seq, pid=1))

    def _on_input(self, message: SendInput) -> None:
        verdict = self.inputs.classify(message.input_seq)
        assert verdict != "out_of_order", f"input {message.input_seq} came before its predecessor"
        if verdict == "apply":
            self._blocked_inputs.append(message)
            self._scheduler.soon(_INPUT_SECONDS, self._apply_input)
        elif (ack := self.inputs.settled_ack(message.input_seq)) is not None:
            self._send(ack)

    def _apply_input(self) -> None:
        message = self._blocked_inputs.pop(0)
        self.applied.append(message.data)
        ack = InputAck(
            session_id=message.session_id,
            command_seq=message.seq,
            input_seq=message.input_seq,
            accepted_bytes=len(message.data),
        )
        self.inputs.settle(ack)
        self._send(ack)
        self._left.append(("stdout", message.data))
        if len(self._left) == 1:
            self._schedule_step()

    def _schedule_step(self) -> None:
        if self._left:
            self._scheduler.soon(_STEP_SECONDS, self._step)

    def _step(self) -> None:
        """Let the program write once, unless it has to wait for room in the ring."""
        stream, data = self._left[0]
        if self._start.overflow == "truncate" or self.sender.free_bytes(stream) >= len(data):
            self._left.pop(0)
            self._produce(stream, data)
        self._schedule_step()

    def _produce(self, stream: Stream, data: bytes) -> None:
        self.production.append((stream, data))
        self.sender.produce(stream, data)
        self._pump()

    def _pump(self) -> None:
        while (frame := self.sender.next_frame()) is not None:
            self._send(frame)
        if self.has_ended and self.sender.is_drained and not self._is_done_sent:
            self._is_done_sent = True
            finals = self.sender.finals()
            self._send(
                InteractiveCmdDone(
                    session_id=self._start.session_id,
                    end_reason="exited",
                    exit_code=0,
                    streams=finals,
                )
            )

    def _send(self, message: Message) -> None:
        if self._to_daemon is not None:
            self._to_daemon.send(message)
