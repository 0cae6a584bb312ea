"""Names of keys and the bytes an xterm sends for them (``TERM=xterm-256color``).

Every single printable character is its own key, and exists with ``alt-`` before it, besides the
names listed in KEY_NAMES. Other ways to write a name (``Ctrl+C``, ``^C``, ``Return``, ``PgUp``)
mean the same key; the case of a name never matters, that of a character does.
"""

from string import ascii_lowercase
from typing import Final

from controller_client.protocol.errors import UnknownKeyName

_ESC: Final = b"\x1b"
_ALT: Final = "alt-"

_PLAIN: dict[str, bytes] = {
    "enter": b"\r",
    "tab": b"\t",
    "shift-tab": _ESC + b"[Z",
    "escape": _ESC,
    "space": b" ",
    "backspace": b"\x7f",
    "delete": _ESC + b"[3~",
    "insert": _ESC + b"[2~",
    "page-up": _ESC + b"[5~",
    "page-down": _ESC + b"[6~",
}
# These change their prefix in application cursor mode (DECCKM): CSI becomes SS3.
_CURSOR: dict[str, bytes] = {
    "up": b"A",
    "down": b"B",
    "right": b"C",
    "left": b"D",
    "home": b"H",
    "end": b"F",
}
_FUNCTION: dict[str, bytes] = {
    f"f{n}": _ESC + b"O" + bytes([0x50 + n - 1]) for n in range(1, 5)
} | {
    f"f{n}": _ESC + b"[%d~" % code
    for n, code in zip(range(5, 13), (15, 17, 18, 19, 20, 21, 23, 24), strict=True)
}
_CONTROL: dict[str, bytes] = {
    f"ctrl-{letter}": bytes([ord(letter) & 0x1F]) for letter in ascii_lowercase
} | {
    "ctrl-space": b"\x00",
    "ctrl-\\": b"\x1c",
    "ctrl-]": b"\x1d",
    "ctrl-^": b"\x1e",
    "ctrl-_": b"\x1f",
}
# xterm's modifier parameter: 1 + shift 1, alt 2, ctrl 4.
_MODIFIED: dict[str, bytes] = {
    f"{modifier}-{key}": _ESC + b"[1;%d" % parameter + final
    for modifier, parameter in (("shift", 2), ("alt", 3), ("ctrl", 5))
    for key, final in _CURSOR.items()
}
_FIXED: dict[str, bytes] = _PLAIN | _FUNCTION | _CONTROL | _MODIFIED
_OTHER_NAMES: Final = {
    "return": "enter",
    "esc": "escape",
    "del": "delete",
    "ins": "insert",
    "bs": "backspace",
    "ctrl-[": "escape",
    "pageup": "page-up",
    "pagedown": "page-down",
    "pgup": "page-up",
    "pgdn": "page-down",
    "backtab": "shift-tab",
}

KEY_NAMES: tuple[str, ...] = (*_PLAIN, *_CURSOR, *_FUNCTION, *_CONTROL, *_MODIFIED)


def canonical_key(name: str) -> str:
    """Return a key's one name, as in KEY_NAMES or as a character, maybe with ``alt-`` before it."""
    if len(name) == 1:
        return name
    if len(name) == len("^x") and name.startswith("^"):
        name = f"ctrl-{name[1:]}"
    lowered = name.lower()
    for prefix in ("control", "ctrl", "shift", "alt"):
        if lowered.startswith((f"{prefix}-", f"{prefix}+")):
            modifier, rest = prefix.replace("control", "ctrl"), name[len(prefix) + 1 :]
            if modifier == "alt" and len(rest) == 1:
                return f"alt-{rest}"
            # No key has two modifiers, so nothing is looked for behind a second one.
            rest = rest.lower()
            lowered = f"{modifier}-{_OTHER_NAMES.get(rest, rest)}"
            break
    return _OTHER_NAMES.get(lowered, lowered)


def key_bytes(name: str, *, application_cursor: bool = False) -> bytes:
    """Return the bytes that a key sends. Raises UnknownKeyName.

    The bytes of the arrows, home and end depend on the cursor mode.
    """
    key = canonical_key(name)
    if key in _CURSOR:
        return _ESC + (b"O" if application_cursor else b"[") + _CURSOR[key]
    if key in _FIXED:
        return _FIXED[key]
    character = key.removeprefix(_ALT)
    if len(character) != 1 or not character.isprintable():
        raise UnknownKeyName(name)
    return (_ESC if key.startswith(_ALT) else b"") + character.encode()


def is_key(name: str) -> bool:
    """Return whether ``key_bytes`` knows the name."""
    try:
        key_bytes(name)
    except UnknownKeyName:
        return False
    return True
