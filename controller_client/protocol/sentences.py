"""Joining of texts for people and models: each part ends as a sentence before the next begins."""

from typing import Final

_ENDS: Final = (".", "!", "?", ":", "…")


def sentences(*parts: str) -> str:
    """Join the parts that are not empty; a part without a final mark gets a full stop."""
    return " ".join(
        part if part.endswith(_ENDS) else f"{part}." for part in map(str.strip, parts) if part
    )
