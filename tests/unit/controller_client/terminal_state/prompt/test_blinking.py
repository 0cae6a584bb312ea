"""Pictures that take turns blink; output that tells anything new does not."""

from controller_client.terminal_state.prompt.blinking import Blinking

ON, OFF = b"\x1b[1;1H\x1b[7m_\x1b[m", b"\x1b[1;1H_"


def taken(*pictures: bytes, pause: float = 0.5) -> list[bool]:
    blinking = Blinking()
    return [blinking.goes_on(picture, pause * number) for number, picture in enumerate(pictures)]


def test_a_picture_is_due_again_once_both_have_taken_turns() -> None:
    assert taken(b"screen", OFF, ON, OFF, ON, OFF) == [False, False, False, False, True, True]


def test_a_picture_may_come_in_pieces() -> None:
    blinking = Blinking()
    for number, picture in enumerate((OFF, ON, OFF)):
        blinking.goes_on(picture, number)
    assert blinking.goes_on(ON[:4], 3.0)
    assert blinking.goes_on(ON[4:], 3.01)
    assert not blinking.goes_on(b"more", 3.02)


def test_another_picture_tells_something_new() -> None:
    assert not taken(OFF, ON, OFF, ON, b"\x1b[1;1Hdone")[-1]


def test_a_spinner_of_three_pictures_is_at_work() -> None:
    frames = [b"\x1b[1;1H" + each for each in (b"|", b"/", b"-")]
    assert not any(taken(*frames * 4))


def test_dots_of_progress_are_all_alike_and_move_on() -> None:
    assert not any(taken(*[b"."] * 8))


def test_a_flood_of_one_picture_has_no_pauses() -> None:
    assert not any(taken(*[ON, OFF] * 8, pause=0.05))


def test_an_input_may_change_the_pictures() -> None:
    blinking = Blinking()
    for number, picture in enumerate((OFF, ON, OFF, ON)):
        blinking.goes_on(picture, number)
    blinking.forget()
    assert not blinking.goes_on(OFF, 5.0)


def below_text(*pictures: bytes) -> list[bool]:
    blinking = Blinking()
    return [
        blinking.goes_on(picture, 0.5 * number, is_full_screen=False)
        for number, picture in enumerate(pictures)
    ]


def test_below_other_text_only_a_drawn_cursor_blinks() -> None:
    above = b"\x1b[100D\x1b[1A\x1b[2K> "
    shown, hidden = above + b"\x1b[7m \x1b[0m\r\n", above + b" \r\n"
    assert below_text(b"Name", hidden, shown, hidden, shown, hidden)[-2:] == [True, True]
    assert not any(below_text(*[above + b"on\r\n", above + b"  \r\n"] * 4))
    assert not any(below_text(*[shown[:-2], b"> " + hidden] * 4))
