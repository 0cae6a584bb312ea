"""The blocks of commands in a guide of ``docs/``."""

import re
from pathlib import Path
from typing import Final

_DOCS: Final = Path(__file__).resolve().parents[3] / "docs"


def blocks_of(guide: str) -> list[tuple[str, str]]:
    """Each block of commands of ``docs/GUIDE``, with the heading above it."""
    found, heading = [], ""
    for part in re.split(r"^(##+ .*)$", (_DOCS / guide).read_text(), flags=re.MULTILINE):
        if part.startswith("##"):
            heading = part.lstrip("#").strip()
        blocks = re.findall(r"^ *```\n(.*?)^ *```", part, re.DOTALL | re.MULTILINE)
        found += [(heading, block) for block in blocks]
    return found


def commands_of(guide: str, *headings: str) -> str:
    """The commands below some headings of a guide, in the order of the guide."""
    known = {heading for heading, _ in blocks_of(guide)}
    assert known.issuperset(headings), f"{guide} has no {set(headings) - known}"
    return "\n".join(text for heading, text in blocks_of(guide) if heading in headings)
