"""Text a host sent, as it may be stored: PostgreSQL takes no NUL, columns have their lengths."""

from collections.abc import Iterable


def stored_text(text: str, max_chars: int) -> str:
    """``text`` without NUL, cut to ``max_chars``."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")[:max_chars]


def stored_list(texts: Iterable[str], max_items: int, max_chars: int) -> list[str]:
    """The first ``max_items`` of ``texts``, each fit to be stored."""
    return [stored_text(text, max_chars) for text, _ in zip(texts, range(max_items), strict=False)]
