"""Broken variants of well-formed JSON messages, the same for the same seed."""

import json
import random
from typing import Any, Final

_EXTREMES: Final[tuple[Any, ...]] = (
    *(None, True, False, 0, -1, 1, 2**31, 2**62, 2**62 + 1, 2**63, 2**64, 10**60, 1.5, 1e308, -0.0),
    *(
        "",
        "\0",
        "\x1b[2J",
        "a" * 70_000,
        "\ud800",
        "\u202e",
        "../../etc/passwd",
        "' OR 1=1 --",
        "{{7*7}}",
        "$(id)",
        "%s%n",
        "=AAAA",
    ),
    *([], {}, [[]], {"": {}}, [0] * 5000, {"a": {"a": {"a": {}}}}),
)
_PIECES: Final = (
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"\0",
    b"\xff",
    b"\xed\xa0\x80",
    b"1e999",
    b"NaN",
    b"\\u0000",
    b"\\ud800",
)


class Mutator:
    """Variants of the messages of a ``corpus`` (encoded JSON)."""

    def __init__(self, corpus: list[bytes], seed: int) -> None:
        self._corpus = corpus
        self._random = random.Random(seed)

    def next(self) -> bytes:
        """The next variant.

        About half of the variants have wrong values, half have wrong bytes, and a few are
        unchanged.
        """
        frame = self._random.choice(self._corpus)
        kind = self._random.random()
        if kind < 0.05:
            return frame
        if kind < 0.55:
            return self._of_values(frame)
        return self._of_bytes(frame)

    def _of_values(self, frame: bytes) -> bytes:
        value = json.loads(frame)
        for _ in range(self._random.choice((1, 1, 1, 2, 5))):
            value = self._changed(value)
        text = json.dumps(value)
        if self._random.random() < 0.1 and text.startswith("{") and len(text) > 2:
            # Repeat the members, so that each name occurs twice.
            text = text[:-1] + "," + text[1:]
        return text.encode()

    def _changed(self, value: Any) -> Any:
        pick = self._random
        if isinstance(value, dict) and value and pick.random() < 0.9:
            name = pick.choice(list(value))
            what = pick.random()
            if what < 0.1:
                return {other: each for other, each in value.items() if other != name}
            if what < 0.15:
                return {
                    **value,
                    pick.choice(("type", "v", "epoch", "id", "unknown", "")): pick.choice(
                        _EXTREMES
                    ),
                }
            return {**value, name: self._changed(value[name])}
        if isinstance(value, list) and value and pick.random() < 0.7:
            place = pick.randrange(len(value))
            return [
                *value[:place],
                self._changed(value[place]),
                *value[place + 1 :],
                *(value[:1] * pick.choice((0, 0, 100))),
            ]
        return pick.choice(_EXTREMES)

    def _of_bytes(self, frame: bytes) -> bytes:
        pick, data = self._random, bytearray(frame)
        for _ in range(pick.choice((1, 1, 2, 8))):
            place = pick.randrange(len(data) + 1)
            what = pick.random()
            if what < 0.3 and place < len(data):
                data[place] = pick.randrange(256)
            elif what < 0.6:
                data[place:place] = pick.choice(_PIECES) * pick.choice((1, 1, 1, 2000))
            elif what < 0.8:
                del data[place : place + pick.choice((1, 4, 64))]
            else:
                del data[place:]
        return bytes(data)
