"""The audit log: who did what, written in the transaction of the action itself.

The rows of each project are a chain: a row is numbered, and its hash covers its content and the hash of the row before it, so that an edit,
a removal or an insertion shows (``projects.audit_proof`` looks). The database refuses to change rows; see the migration of the triggers.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone

from projects.dispatch import as_parameter, time_as_parameter

SERVER: Final = UUID(int=0)
"""The chain of what belongs to no project, such as a failed login."""
GENESIS: Final = "0" * 64
"""Stands for the hash of the row before the first."""
MAX_ACTOR_CHARS: Final = 128

About = tuple[UUID | None, UUID | None, UUID | None]
"""Project, controller and session that a row speaks of."""


class Entry(NamedTuple):
    """What the hash of a row covers."""

    seq: int
    at: datetime
    about: About
    actor: str
    action: str
    detail: Mapping[str, Any]


_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_HEAD: Final = "SELECT seq, hash FROM projects_auditevent WHERE project_id = %s ORDER BY seq DESC LIMIT 1"
_INSERT: Final = """
INSERT INTO projects_auditevent (created_at, project_id, controller_id, session_id, actor, action, detail, seq, hash)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


def audit(actor: str, action: str, about: About, detail: Mapping[str, Any] | None = None) -> None:
    """Writes one row; ``detail`` is JSON without fractions. In a transaction of its own, unless it is called in one.

    It takes the chain's lock until that transaction ends, so it belongs near its end.
    """
    project_id, controller_id, session_id = about[0] or SERVER, about[1], about[2]
    actor, detail, now = actor[:MAX_ACTOR_CHARS], dict(detail or {}), timezone.now()
    with transaction.atomic(savepoint=False), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # SQLite has one writer anyway. A statement of its own: the next one must see what the lock waited for.
            cursor.execute(_LOCK, [project_id.int & 0x7FFF_FFFF_FFFF_FFFF])
        cursor.execute(_HEAD, [as_parameter(project_id)])
        before, previous = cursor.fetchone() or (0, GENESIS)
        seq = before + 1
        digest = hash_of(previous, Entry(seq, now, (project_id, controller_id, session_id), actor, action, detail))
        ids = [None if each is None else as_parameter(each) for each in (project_id, controller_id, session_id)]
        cursor.execute(_INSERT, [time_as_parameter(now), *ids, actor, action, json.dumps(detail), seq, digest])


def hash_of(previous: str, entry: Entry) -> str:
    """SHA-256 of a row: of ``previous``, a line feed, and the content as JSON with sorted keys, in ASCII."""
    ids = [None if each is None else str(each) for each in entry.about]
    content = [entry.seq, entry.at.astimezone(UTC).isoformat(timespec="microseconds"), *ids, entry.actor, entry.action, entry.detail]
    return sha256(f"{previous}\n{json.dumps(content, sort_keys=True, separators=(',', ':'))}".encode()).hexdigest()
