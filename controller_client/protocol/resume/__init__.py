"""Numbering, windows, deduplication and resume, without I/O, so that they can be simulated.

Output travels holder -> daemon -> server: :class:`OutputSender` (holder) keeps what is not
committed and starts again from any offset, :class:`ConnectionSender` (daemon) shares one connection
between sessions, :class:`ReceiveWindow` and :class:`StreamReceiver` (server) refuse what exceeds
the window and keep each byte once. Input travels the other way: :class:`InputSequencer` (holder)
applies each input once, in order.
"""

from controller_client.protocol.resume.connection_sender import ConnectionSender, OutputLaneMessage
from controller_client.protocol.resume.input_sequencer import InputSequencer, InputVerdict
from controller_client.protocol.resume.output_receiver import ReceiveWindow, StreamReceiver
from controller_client.protocol.resume.output_sender import OutputSender
from controller_client.protocol.resume.production_times import STEP_SECONDS

__all__ = [
    "STEP_SECONDS",
    "ConnectionSender",
    "InputSequencer",
    "InputVerdict",
    "OutputLaneMessage",
    "OutputSender",
    "ReceiveWindow",
    "StreamReceiver",
]
