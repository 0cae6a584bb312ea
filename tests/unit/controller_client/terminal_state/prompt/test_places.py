"""Text on several rows is a screen; one place, a cleared screen and an aside are not."""

import pytest

from controller_client.terminal_state.prompt.output_modes import OutputModes

JOE = b"\x1b[H\x1b[2J\x1b[?2004h\x1b[Hfile\r\n\x1b[K\n\x1b[KJoe's Own Editor\x1b[H\nNew File\r"
TMUX = b"\x1b[H\x1b[2J\x1b[1;1H\x1b[1;24r$ \x1b[K\r\n\x1b[K\r\n[0] 0:bash*\x1b[1;3H\x1b[?2004h"
EX = b'\x1b[?1049h\x1b[?2004h\x1b[24;1H"x" [New File]\r\r\nEntering Ex mode.\r\r\n:'


@pytest.mark.parametrize(
    ("output", "are_many"),
    [
        (JOE, True),
        (TMUX, True),
        (EX, False),
        (b"\x1b[3;1Hone\x1b[4;1Htwo", True),
        (b"\x1b[3done\x1b[4dtwo", True),
        (b"\x1b[3;1Hone\x1b[3;9Htwo", False),
        (b"\x1b[?1049h\x1b[Hone\r\ntwo\x1b[A", True),
        (b"\x1b[Hone\r\ntwo\x1b[A", False),
        (b"\x1b[H\x1b[2Jone\r\ntwo\r\n\x1b[H\x1b[2J> ", False),
        (b"\x1b[H\x1b[Jone\r\ntwo\r\n\x1b[H\x1b[J> ", False),
        (b"\x1b7\x1b[99;1H\x1b[J\x1b8\r\n\x1b[A\x1b[K? Name: ", False),
        (b"\x1b[s\x1b[1;70H12:00\x1b[u$ \x1b[s\x1b[1;70H12:01\x1b[u", False),
        (b"\x1b7\x1b[24;0f50%\x1b8line\r\n\x1b7\x1b[24;0f60%\x1b8", False),
        (b"one\r\ntwo\r\n\x1b[H", False),
    ],
)
def test_a_screen_is_drawn_on_many_rows(output: bytes, are_many: bool) -> None:
    for size in (1, 7, len(output)):
        modes = OutputModes()
        for start in range(0, len(output), size):
            modes.feed(output[start : start + size])
        assert modes.is_drawn_on_many_rows is are_many, size


def test_a_prompt_for_a_line_ends_the_drawing() -> None:
    modes = OutputModes()
    modes.feed(JOE)
    modes.forget_drawing()
    assert not modes.is_drawn_on_many_rows
    assert not modes.is_drawn
