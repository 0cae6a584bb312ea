"""An interrupt that overtakes unread input, on the terminal of a real program."""

from controller_client.holder.input.terminal_target import TerminalTarget
from controller_client.program.pty_process import PtyProcess
from controller_client.protocol.messages import SendInput
from tests.support.hosts.bare_terminal import BareTerminal

_IGNORES = "trap '' INT; read -p 'name: ' x; echo \"got $x\""


def test_no_claim_from_before_an_interrupt_stands_after_it() -> None:
    with BareTerminal(["bash", "-c", _IGNORES]) as terminal:
        assert terminal.wait(20).is_waiting
        typed: list[bool] = []
        target = TerminalTarget(
            PtyProcess(terminal.process),
            terminal.watcher,
            on_typed=lambda: typed.append(True),
            is_queue_blocked=lambda: True,
        )
        assert target.interrupt(SendInput(seq=1, session_id="s", input_seq=1, data=b"\x03"))
        assert typed == [True]
        assert not terminal.step(0).is_waiting
        assert terminal.wait(20).is_waiting
