"""Takes secrets out of output before anything else of the host sees it, wherever the output happens to be cut.

What a program prints of a secret is looked for as it is and in the forms programs give it: base64 (at any alignment, so also inside
``user:password``), quoted for a URL, for JSON, for a shell. Best effort: a secret that is split by escape sequences or line breaks, turned
around, compressed or encrypted is not found, nor is one shorter than MIN_MASKED_BYTES.

Of overlapping finds the leftmost counts, and of those the longest. What may be the beginning of a find is held back, never more than the
longest form less one byte, until more output decides it, or ``release`` gives up waiting. What is released in the middle of a secret is
its beginning; the rest is masked all the same when it comes.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from controller_client.protocol.messages import Stream

MIN_MASKED_BYTES: Final = 6
MASK: Final = b"*" * MIN_MASKED_BYTES
"""Never longer than what it stands for, so that masked output never needs more room than there was for it."""
HOLD_SECONDS: Final = 0.25
"""How long a stream has to be silent before what is held back of it leaves."""


class SecretForms:
    """What to look for: every form of every secret of a session. Shared by the masks of its streams."""

    def __init__(self) -> None:
        self._forms: tuple[bytes, ...] = ()
        self._found = re.compile(b"(?!)")
        self._begins = self._found

    @property
    def longest(self) -> int:
        """Length of the longest form; 0 while there is none."""
        return len(self._forms[0]) if self._forms else 0

    def add(self, secret: bytes) -> None:
        """Look for this one too."""
        forms = set(self._forms) | {form for form in forms_of(secret) if len(form) >= MIN_MASKED_BYTES}
        if forms != set(self._forms):
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
            # Longest first, as the first that fits is taken.
            self._found = re.compile(b"|".join(map(re.escape, self._forms)))
            self._begins = re.compile(b"[" + re.escape(bytes({form[0] for form in self._forms})) + b"]")

    def find(self, data: bytes, start: int) -> tuple[int, int]:
        """Where the next form lies in ``data``; behind its end if there is none."""
        # Nearly always there is none, and to be sure of that takes far less time than to look for all of them at once.
        match = self._found.search(data, start) if any(form in data for form in self._forms) else None
        return match.span() if match is not None else (len(data), len(data))

    def undecided_from(self, data: bytes, start: int) -> int:
        """Where the first beginning of a form lies that ``data`` ends in the middle of; its end if there is none."""
        for match in self._begins.finditer(data, max(start, len(data) - self.longest + 1)):
            tail = data[match.start() :]
            if any(len(form) > len(tail) and form.startswith(tail) for form in self._forms):
                return match.start()
        return len(data)


class OutputMask:
    """One stream on its way from the program to the ring."""

    def __init__(self, forms: SecretForms) -> None:
        self._forms = forms
        self._held = b""
        # How much of what is held has been released already.
        self._released = 0

    @property
    def held_bytes(self) -> int:
        """How much there is to release."""
        return len(self._held) - self._released

    def feed(self, data: bytes) -> bytes:
        """What may leave, now that ``data`` came."""
        held = self._held + data
        start, pieces = 0, []
        while True:
            undecided = self._forms.undecided_from(held, start)
            begin, end = self._forms.find(held, start)
            if begin >= undecided:
                break
            pieces += [held[max(start, self._released) : begin], self._mask(begin, end)]
            start = end
        pieces.append(held[max(start, self._released) : undecided])
        self._released = max(0, self._released - undecided)
        self._held = held[undecided:]
        return b"".join(pieces)

    def release(self) -> bytes:
        """All that is held back, decided as if nothing followed. It is remembered, so that what follows is still found."""
        held, start, pieces = self._held, 0, []
        while start < len(held):
            begin, end = self._forms.find(held, start)
            pieces += [held[max(start, self._released) : begin], self._mask(begin, end)]
            start = end
        self._released = len(held)
        return b"".join(pieces)

    def _mask(self, begin: int, end: int) -> bytes:
        """For what was found and is not released yet."""
        return MASK[: max(0, end - max(begin, self._released))]


class SessionMasks:
    """The masks of one session's streams. Until there is a secret, output passes untouched. ``now`` is monotonic seconds."""

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._forms = SecretForms()
        self._masks = {stream: OutputMask(self._forms) for stream in streams}
        self._fed_at = 0.0

    def add(self, secret: bytes) -> None:
        """Mask this one in all that comes from now on."""
        self._forms.add(secret)

    def feed(self, stream: Stream, data: bytes, now: float) -> bytes:
        """What of the stream may leave, now that ``data`` came."""
        if not self._forms.longest:
            return data
        self._fed_at = now
        return self._masks[stream].feed(data)

    @property
    def held_bytes(self) -> int:
        """How much is held back."""
        return sum(mask.held_bytes for mask in self._masks.values()) if self._forms.longest else 0

    @property
    def deadline(self) -> float | None:
        """When to release what is held back, if nothing comes before."""
        return self._fed_at + HOLD_SECONDS if self.held_bytes else None

    def release(self) -> Iterator[tuple[Stream, bytes]]:
        """All that is held back."""
        for stream, mask in self._masks.items():
            if mask.held_bytes:
                yield stream, mask.release()


def forms_of(secret: bytes) -> Iterable[bytes]:
    """The secret as it is and as programs write it."""
    # Only a holder that is given a secret needs these.
    import json
    from shlex import quote
    from urllib.parse import quote_from_bytes, quote_plus

    text = secret.decode("utf-8", "surrogateescape")
    yield secret
    yield from _base64_forms(secret)
    for safe in ("/", ""):
        quoted = quote_from_bytes(secret, safe=safe)
        yield from (quoted.encode(), _lower_escapes(quoted).encode(), quoted.replace("%20", "+").encode())
    yield quote_plus(secret).encode()
    for is_ascii in (True, False):
        as_json = json.dumps(text, ensure_ascii=is_ascii)[1:-1]
        for form in (as_json, as_json.replace("/", "\\/")):
            yield form.encode("utf-8", "surrogateescape")
    # Without the quotes around it, which may hold more than the secret.
    for shell in (quote(f"{text} ")[1:-2], re.sub(r"([^\w@%+=:,./-])", r"\\\1", text), re.sub(r'([$`"\\!])', r"\\\1", text)):
        yield shell.encode("utf-8", "surrogateescape")
    yield text.replace("'", "\\'").encode("utf-8", "surrogateescape")


def _base64_forms(secret: bytes) -> Iterable[bytes]:
    """The characters that are sure whatever stands before and behind the secret, and those of the secret alone."""
    from base64 import b64encode, urlsafe_b64encode

    for encode in (b64encode, urlsafe_b64encode):
        yield encode(secret).rstrip(b"=")
        for lead in range(3):
            encoded = encode(b"\0" * lead + secret)
            first = (lead * 8 + 5) // 6
            yield encoded[first : (lead + len(secret)) * 8 // 6]


def _lower_escapes(quoted: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)
