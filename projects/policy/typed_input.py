"""One input for a program, as its caller asked for it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True, slots=True)
class Typing:
    """``data`` exactly as given, then the named ``keys``, then the end of the input if ``eof``.

    ``secret``: the name of a stored secret, which is typed alone and with Enter behind it.
    ``by_person``: a secret that a person has typed for this prompt, which is typed in the same way.
    """

    data: bytes = field(default=b"", repr=False)
    keys: tuple[str, ...] = ()
    eof: bool = False
    secret: str | None = None
    by_person: bytes | None = field(default=None, repr=False)

    @property
    def has_text(self) -> bool:
        """True if there is anything to type but a secret."""
        return bool(self.data or self.keys or self.eof)

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to type at all: such a call only waits."""
        return not self.has_text and self.secret is None and self.by_person is None

    @property
    def is_unentered(self) -> bool:
        """True if text is typed and no Enter behind it."""
        return self.data[-1:] not in {b"", b"\n", b"\r"} and not (self.keys or self.eof)
