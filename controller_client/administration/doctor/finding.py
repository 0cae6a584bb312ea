"""A finding of the doctor: what was looked at, how it is, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

# ``note``: it works as it was set up, and the operator may want to know how.
Level = Literal["ok", "note", "warning", "problem"]


@dataclass(frozen=True)
class Finding:
    """The outcome of one check. ``remedy`` is empty where nothing has to be done."""

    check: str
    level: Level
    text: str
    remedy: str = ""
