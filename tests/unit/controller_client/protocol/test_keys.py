"""Key names send what an xterm sends."""

import curses
import os
from pathlib import Path

import pytest

from controller_client.protocol.errors import LocalProtocolError, UnknownKeyName
from controller_client.protocol.keys import KEY_NAMES, is_key, key_bytes

TERMINFO = {
    "up": "kcuu1",
    "down": "kcud1",
    "left": "kcub1",
    "right": "kcuf1",
    "home": "khome",
    "end": "kend",
    "insert": "kich1",
    "delete": "kdch1",
    "page-up": "kpp",
    "page-down": "knp",
    "shift-tab": "kcbt",
} | {f"f{n}": f"kf{n}" for n in range(1, 13)}


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("enter", b"\r"),
        ("tab", b"\t"),
        ("shift-tab", b"\x1b[Z"),
        ("escape", b"\x1b"),
        ("space", b" "),
        ("backspace", b"\x7f"),
        ("delete", b"\x1b[3~"),
        ("insert", b"\x1b[2~"),
        ("up", b"\x1b[A"),
        ("down", b"\x1b[B"),
        ("right", b"\x1b[C"),
        ("left", b"\x1b[D"),
        ("home", b"\x1b[H"),
        ("end", b"\x1b[F"),
        ("page-up", b"\x1b[5~"),
        ("page-down", b"\x1b[6~"),
        ("f1", b"\x1bOP"),
        ("f4", b"\x1bOS"),
        ("f5", b"\x1b[15~"),
        ("f12", b"\x1b[24~"),
        ("ctrl-a", b"\x01"),
        ("ctrl-c", b"\x03"),
        ("ctrl-d", b"\x04"),
        ("ctrl-z", b"\x1a"),
        ("ctrl-space", b"\x00"),
        ("ctrl-\\", b"\x1c"),
        ("ctrl-]", b"\x1d"),
        ("ctrl-^", b"\x1e"),
        ("ctrl-_", b"\x1f"),
        ("i", b"i"),
        ("Y", b"Y"),
        ("ä", b"\xc3\xa4"),
        ("-", b"-"),
        ("alt-x", b"\x1bx"),
        ("alt-X", b"\x1bX"),
        ("alt--", b"\x1b-"),
        ("alt- ", b"\x1b "),
        ("alt-ä", b"\x1b\xc3\xa4"),
    ],
)
def test_a_key_sends_its_bytes(name: str, sent: bytes) -> None:
    assert key_bytes(name) == sent


@pytest.mark.parametrize(("name", "capability"), TERMINFO.items())
def test_the_terminal_database_agrees(name: str, capability: str) -> None:
    with Path(os.devnull).open("w") as nowhere:
        curses.setupterm("xterm-256color", nowhere.fileno())
    # xterm's entry describes the keys in application mode, which programs that use it switch on.
    assert key_bytes(name, application_cursor=True) == curses.tigetstr(capability)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Enter", "enter"),
        ("RETURN", "enter"),
        ("Esc", "escape"),
        ("PgUp", "page-up"),
        ("PageDown", "page-down"),
        ("Del", "delete"),
        ("Ctrl+C", "ctrl-c"),
        ("ctrl-C", "ctrl-c"),
        ("Control-c", "ctrl-c"),
        ("^C", "ctrl-c"),
        ("^[", "escape"),
        ("Alt+X", "alt-X"),
        ("Shift+Tab", "shift-tab"),
        ("Ctrl+Up", "ctrl-up"),
        ("F5", "f5"),
    ],
)
def test_other_ways_to_write_a_name_mean_the_same_key(written: str, name: str) -> None:
    assert key_bytes(written) == key_bytes(name)


def test_only_cursor_keys_depend_on_the_cursor_mode() -> None:
    differing = {
        name for name in KEY_NAMES if key_bytes(name) != key_bytes(name, application_cursor=True)
    }
    assert differing == {"up", "down", "left", "right", "home", "end"}


def test_every_listed_name_is_a_key_and_is_listed_once() -> None:
    assert all(is_key(name) for name in KEY_NAMES)
    assert len(set(KEY_NAMES)) == len(KEY_NAMES) == 16 + 12 + 26 + 5 + 18


@pytest.mark.parametrize(
    "name",
    [
        "",
        "enter ",
        "f0",
        "f13",
        "ctrl-",
        "ctrl-1",
        "ctrl",
        "^1",
        "alt-",
        "alt-ab",
        "alt-\n",
        "alt-\ud800",
        "hyper-x",
        "ctrl-alt-x",
        pytest.param("ctrl-" * 5000 + "c", id="thousands of modifiers"),
    ],
)
def test_any_other_name_is_refused_without_being_repeated(name: str) -> None:
    assert not is_key(name)
    with pytest.raises(UnknownKeyName) as raised:
        key_bytes(name)
    assert isinstance(raised.value, LocalProtocolError)
    assert str(raised.value) == f"no key has this name of {len(name)} characters"
