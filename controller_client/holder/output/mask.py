"""Masks secrets in output before anything else on the host sees it, wherever the output is cut.

A secret is looked for as it is, and in the forms of ``spellings`` that programs give it: base64 (at
any alignment, so also inside ``user:password``), quoted for a URL, for JSON, for a shell, for HTML
and XML, for SQL and CSV, and as UTF-16. This is best effort. It does not find a secret that is
split by escape sequences or line breaks, reversed, compressed or encrypted, nor one that is shorter
than MIN_MASKED_BYTES.

Of overlapping finds the leftmost counts, and of those the longest. Output that may be the beginning
of a find is held back until more output decides it, or ``release`` gives up waiting. It is never
more than the longest form less one byte. ``release`` shows the beginning of a secret only while
that is less than half of it. The rest is masked all the same when it comes.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import Final

from controller_client.holder.output.spellings import forms_of
from controller_client.protocol.limits import MIN_MASKED_BYTES
from controller_client.protocol.messages import Stream

MASK: Final = b"*" * MIN_MASKED_BYTES
"""Never longer than what it stands for, so that masked output never needs more room."""
HOLD_SECONDS: Final = 0.25
"""Silence of a stream after which the output that is held back leaves."""


class SecretForms:
    """Every form of every secret of a session, shared by the masks of its streams."""

    def __init__(self) -> None:
        self._forms: tuple[bytes, ...] = ()
        self._begins = re.compile(b"(?!)")

    @property
    def longest(self) -> int:
        """Length of the longest form; 0 while there is none."""
        return len(self._forms[0]) if self._forms else 0

    def add(self, secret: bytes) -> None:
        """Look for the forms of this secret, too."""
        forms = set(self._forms) | {
            form for form in forms_of(secret) if len(form) >= MIN_MASKED_BYTES
        }
        if forms != set(self._forms):
            self._forms = tuple(sorted(forms, key=lambda form: (-len(form), form)))
            self._begins = re.compile(
                b"[" + re.escape(bytes({form[0] for form in self._forms})) + b"]"
            )

    def finds(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where each form lies in ``data``, in order."""
        # Each form is searched for by itself. A pattern of them all takes seconds to compile, in
        # which the holder would do nothing else.
        nexts = {form: at for form in self._forms if (at := data.find(form)) >= 0}
        while nexts:
            # The leftmost, and of those the longest.
            begin, _, form = min((at, -len(form), form) for form, at in nexts.items())
            end = begin + len(form)
            yield begin, end
            for other, at in tuple(nexts.items()):
                if at < end:
                    nexts[other] = data.find(other, end)
                    if nexts[other] < 0:
                        del nexts[other]

    def is_most_of_one(self, tail: bytes) -> bool:
        """Return whether ``tail`` is the beginning of a form, and half of the form or more.

        To show so much would be as bad as to show all of it.
        """
        return any(2 * len(tail) >= len(form) and form.startswith(tail) for form in self._forms)

    def undecided_from(self, data: bytes, start: int) -> int:
        """Return where the first form begins that ``data`` ends in the middle of.

        The end of ``data`` if there is none.
        """
        for match in self._begins.finditer(data, max(start, len(data) - self.longest + 1)):
            tail = data[match.start() :]
            if any(len(form) > len(tail) and form.startswith(tail) for form in self._forms):
                return match.start()
        return len(data)


class OutputMask:
    """One stream on its way from the program to the ring. ``fed_at``: the last time it wrote."""

    def __init__(self, forms: SecretForms) -> None:
        self.fed_at = 0.0
        self._forms = forms
        self._held = b""
        # Length of the part of ``_held`` that was released already.
        self._released = 0

    @property
    def held_bytes(self) -> int:
        """Number of bytes that a release would give."""
        return len(self._held) - self._released

    def feed(self, data: bytes) -> bytes:
        """Take ``data`` and return the output that may leave now."""
        held = self._held + data
        start, pieces = 0, []
        undecided = self._forms.undecided_from(held, start)
        for begin, end in self._forms.finds(held):
            if begin >= undecided:
                break
            pieces += [held[max(start, self._released) : begin], self._mask(begin, end)]
            start = end
            if undecided < start:
                undecided = self._forms.undecided_from(held, start)
        pieces.append(held[max(start, self._released) : undecided])
        self._released = max(0, self._released - undecided)
        self._held = held[undecided:]
        return b"".join(pieces)

    def release(self) -> bytes:
        """Return all that is held back, decided as if nothing followed.

        The mask remembers it, so a form that goes on after it is still found.
        """
        held, start, pieces = self._held, 0, []
        found = self._forms.finds(held)
        while start < len(held):
            if self._forms.is_most_of_one(held[start:]):
                pieces.append(self._mask(start, len(held)))
                break
            begin, end = next(found, (len(held), len(held)))
            pieces += [held[max(start, self._released) : begin], self._mask(begin, end)]
            start = end
        self._released = len(held)
        return b"".join(pieces)

    def _mask(self, begin: int, end: int) -> bytes:
        """Return the mask of a find, for the part of it that was not released yet."""
        return MASK[: max(0, end - max(begin, self._released))]


class SessionMasks:
    """The masks of one session's streams.

    Until there is a secret, output passes untouched. ``now`` is monotonic seconds.
    """

    def __init__(self, streams: Sequence[Stream]) -> None:
        self._forms = SecretForms()
        self._masks = {stream: OutputMask(self._forms) for stream in streams}
        self._has_secrets = False

    def add(self, secret: bytes) -> None:
        """Mask this secret in all output that comes from now on."""
        self._forms.add(secret)
        self._has_secrets = self._forms.longest > 0

    def feed(self, stream: Stream, data: bytes, now: float) -> bytes:
        """Take ``data`` of a stream and return the output that may leave now."""
        if not self._has_secrets:
            return data
        mask = self._masks[stream]
        mask.fed_at = now
        return mask.feed(data)

    @property
    def held_bytes(self) -> int:
        """Number of bytes that are held back, of all streams."""
        return sum(mask.held_bytes for mask in self._masks.values()) if self._has_secrets else 0

    @property
    def deadline(self) -> float | None:
        """The moment to release what is held back, if no output of its stream comes before."""
        held = (mask for mask in self._masks.values() if mask.held_bytes)
        return min((mask.fed_at + HOLD_SECONDS for mask in held), default=None)

    def release(self, now: float = math.inf) -> Iterator[tuple[Stream, bytes]]:
        """Yield what is held back, by stream, of the streams whose moment has come by ``now``."""
        for stream, mask in self._masks.items():
            if mask.held_bytes and now >= mask.fed_at + HOLD_SECONDS:
                yield stream, mask.release()
