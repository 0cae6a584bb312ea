"""Lines whose secrets are masked, also those that the end of a line divides. Pure.

A program that folds its output draws a secret on two lines, and neither of them holds it.
"""

from collections.abc import Iterator
from typing import Generic, TypeVar

from projects.secrets.masks import SecretMask

T = TypeVar("T")


class MaskedLines(Generic[T]):
    """Takes lines one by one, each a value of ``T`` with its text, and gives them back masked.

    The newest are held back, for as long as a secret may go on in the next one.
    """

    def __init__(self, mask: SecretMask) -> None:
        self._mask = mask
        # The expression is longer than what it finds, but for the ends of lines.
        self._longest = 0 if mask.found is None else len(mask.found.pattern)
        self._held: list[tuple[T, str]] = []
        self._size = 0

    def feed(self, line: T, text: str) -> Iterator[tuple[T, str]]:
        """Takes the next line, and yields those that no later line belongs to."""
        if not self._longest:
            yield line, text
            return
        self._held.append((line, text))
        self._size += len(text) + 1
        if self._size > 2 * self._longest:
            lines = self._masked()
            kept = len(lines)
            self._size = 0
            while kept and self._size < self._longest:
                kept -= 1
                self._size += len(lines[kept][1]) + 1
            self._held = lines[kept:]
            yield from lines[:kept]

    def finish(self) -> Iterator[tuple[T, str]]:
        """Yields what is held: the stream ends here, or bytes of it are gone."""
        lines = self._masked()
        self._held, self._size = [], 0
        yield from lines

    def _masked(self) -> list[tuple[T, str]]:
        pieces = self._mask.masked("\n".join(text for _, text in self._held)).split("\n")
        lines, start = [], 0
        for line, text in self._held:
            # Redrawn output may have ends of lines within what its bytes show as one.
            end = start + text.count("\n") + 1
            lines.append((line, "\n".join(pieces[start:end])))
            start = end
        return lines
