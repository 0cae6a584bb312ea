"""Signals by their names."""

import signal

import pytest

from controller_client.protocol.signal_names import SIGNAL_NAMES, name_of_signal, number_of_signal


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("SIGTERM", 15),
        (" term ", 15),
        ("Int", 2),
        ("9", 9),
        ("SIGRTMIN", int(signal.SIGRTMIN)),
        ("rtmin+3", int(signal.SIGRTMIN) + 3),
        ("SIGRTMAX-1", int(signal.SIGRTMAX) - 1),
        (str(int(signal.SIGRTMAX)), int(signal.SIGRTMAX)),
        ("SIGNOPE", None),
        ("", None),
        ("SIG", None),
        ("0", None),
        ("-9", None),
        ("65", None),
        ("32", None),
        ("9" * 5000, None),
        ("RTMIN+99", None),
        ("RTMIN-1", None),
        ("RTMAX+1", None),
        ("\u00b2", None),
    ],
)
def test_a_signal_is_known_by_name_or_number(name: str, number: int | None) -> None:
    assert number_of_signal(name) == number


@pytest.mark.parametrize(
    ("number", "name"),
    [(2, "SIGINT"), (17, "SIGCHLD"), (int(signal.SIGRTMIN), "SIGRTMIN"), (32, "SIG32")],
)
def test_a_number_has_one_name(number: int, name: str) -> None:
    assert name_of_signal(number) == name


def test_every_name_that_is_shown_is_accepted() -> None:
    assert all(map(number_of_signal, SIGNAL_NAMES))
    assert all(
        number_of_signal(name_of_signal(number)) == number
        for number in (1, 15, int(signal.SIGRTMIN) + 5, int(signal.SIGRTMAX))
    )
