"""Rows that verification still needs when their time is over. They are written anew as they expire.

Without them a mark that somebody acknowledged, or a head that a restore lost, would raise its alarm
again, and nobody would find that the end of a quiet chain was removed.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

from projects.audit.log import Entry
from projects.audit.lost import ACTION as LOST
from projects.audit.marks import REPEAT_ACTION, newest_signed

ACKNOWLEDGE: Final = "audit.acknowledge"
NEEDED: Final = (ACKNOWLEDGE, LOST, REPEAT_ACTION)
"""The actions of such rows."""


def carried(gone: Iterable[Entry]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the action and the detail of each row to write, now that the rows ``gone`` expire."""
    newest = lru_cache(maxsize=None)(_newest_head)
    for row in gone:
        # A row that was carried before names who wrote it first, and when.
        said = {"by": row.actor, "at": row.at.isoformat(), **row.detail}
        if row.action == REPEAT_ACTION:
            # A head that is not the newest of its chain was repeated by a later row.
            heads = said["heads"] = {
                chain: head for chain, head in said["heads"].items() if head[0] >= newest(chain)
            }
            if not heads:
                continue
        yield row.action, said


def _newest_head(chain: str) -> int:
    found = newest_signed(UUID(chain))
    return 0 if found is None else found.seq
