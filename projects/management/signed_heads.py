"""Signed heads of the audit log, as a log of the server reports them."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from uuid import UUID

from projects.audit.marks import Heads
from projects.management.refusals import invalid

_SIGNED: Final = re.compile(
    r"audit log of project ([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}) "
    r"signed at row (\d{1,18}): ([0-9a-f]{64})"
)


def heads_of_log(file: Path) -> Heads:
    """The heads that a log says were signed. Raises CommandError if it cannot be read."""
    try:
        with file.open(errors="replace") as lines:
            return _heads_of(lines)
    except OSError as error:
        raise invalid(
            f"{file} cannot be read: {error.strerror}", "Name a file that can be"
        ) from None


def _heads_of(lines: Iterable[str]) -> Heads:
    heads: Heads = {}
    for line in lines:
        if (found := _SIGNED.search(line)) is not None:
            heads.setdefault(UUID(found[1]), set()).add((int(found[2]), found[3]))
    return heads
