"""A real program on a terminal, as the holder's loop sees it."""

import os
import time

from controller_client.holder.input.answers import InputAnswers
from controller_client.holder.output.pump import OutputPump
from controller_client.holder.running_program import RunningProgram
from controller_client.program.start import start_program
from controller_client.protocol.limits import RING_BYTES
from controller_client.protocol.messages import Failure, StartInteractiveCmd
from controller_client.system.boot import lifetime_clock


def test_after_a_hang_up_nothing_is_due_again_and_again() -> None:
    start = StartInteractiveCmd(seq=1, session_id="s", argv=["sleep", "100"], io_mode="pty")
    running, now = start_program(start, None), time.monotonic()
    program = RunningProgram(
        start,
        running,
        group=None,
        answers=InputAnswers("s"),
        pump=OutputPump("s", ["stdout"], ring_bytes=RING_BYTES, overflow="truncate"),
        lives_from=lifetime_clock(),
        now=now,
    )
    # As the end of a session does when a process of another user cannot be killed.
    program._hang_up()
    os.waitid(os.P_PID, running.process.pid, os.WEXITED | os.WNOWAIT)
    now = time.monotonic()
    program.advance(now)
    due = [moment for moment in program.deadlines(now) if moment is not None and moment <= now]
    wanted = list(program.read_fds(now))
    program.close(Failure(code="SESSION_ENDED", message="over"), now)
    assert (due, wanted) == ([], [])
