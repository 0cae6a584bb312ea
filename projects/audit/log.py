"""The audit log: who did what, written in the transaction of the action itself.

The rows of each project are a chain. A row is numbered, and its hash covers its content and the
hash of the row before it. So ``projects.audit.proof`` finds an edit, a removal or an insertion. The
database refuses changes of rows: see the migration of the triggers.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, NamedTuple
from uuid import UUID

from django.db import transaction

from projects.storage import clock
from projects.storage.columns import as_parameter, is_sqlite, time_as_parameter
from projects.storage.rows import execute

SERVER: Final = UUID(int=0)
"""The chain of rows that belong to no project, such as a failed login."""
GENESIS: Final = "0" * 64
"""The hash that the first row of a chain has for the row before it."""
MAX_ACTOR_CHARS: Final = 128
_DIGEST_CHARS: Final = 16

About = tuple[UUID | None, UUID | None, UUID | None]
"""The project, the controller and the session that a row is about."""


class Entry(NamedTuple):
    """The content of an audit row that its hash covers."""

    seq: int
    at: datetime
    about: About
    actor: str
    action: str
    detail: Mapping[str, Any]


_LOCK: Final = "SELECT pg_advisory_xact_lock(%s)"
_HEAD: Final = (
    "SELECT seq, hash FROM projects_auditevent WHERE project_id = %s ORDER BY seq DESC LIMIT 1"
)
_INSERT: Final = """
INSERT INTO projects_auditevent
    (created_at, project_id, controller_id, session_id, actor, action, detail, seq, hash)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)
"""


def person(username: str) -> str:
    """The name of a person in audit rows, and wherever persons are told apart by their names.

    A name that is too long is cut, with a digest at its end, so that no two people have one name.
    """
    name = f"admin:{username}"
    if len(name) <= MAX_ACTOR_CHARS:
        return name
    digest = sha256(name.encode()).hexdigest()[:_DIGEST_CHARS]
    return f"{name[: MAX_ACTOR_CHARS - _DIGEST_CHARS - 1]}~{digest}"


def audit(actor: str, action: str, about: About, detail: Mapping[str, Any] | None = None) -> None:
    """Writes one audit row, in the caller's transaction or in one of its own.

    The row locks the chain of its project until that transaction ends, so call this near the end.

    Args:
        actor: who acts; cut to MAX_ACTOR_CHARS.
        action: the verb, such as ``session.start``.
        about: the project, the controller and the session that the row is about.
        detail: JSON. A fraction is stored as a text, as PostgreSQL would store another number.

    """
    project_id = about[0] or SERVER
    actor, now = _storable(actor[:MAX_ACTOR_CHARS]), clock.now()
    detail = _storable(detail or {})
    with transaction.atomic(savepoint=False):
        if not is_sqlite():
            # SQLite has one writer anyway. The lock is a statement of its own, because the next
            # statement must see the rows that the lock waited for.
            execute(_LOCK, [project_id.int & 0x7FFF_FFFF_FFFF_FFFF])
        head = execute(_HEAD, [as_parameter(project_id)]).fetchone()
        before, previous = head or (0, GENESIS)
        seq = before + 1
        about = (project_id, *about[1:])
        digest = hash_of(previous, Entry(seq, now, about, actor, action, detail))
        ids = [None if each is None else as_parameter(each) for each in about]
        execute(
            _INSERT, [time_as_parameter(now), *ids, actor, action, json.dumps(detail), seq, digest]
        )


def _storable(value: Any) -> Any:
    """The value as both databases store it and give it back, because the hash covers it.

    PostgreSQL gives 1e+16 back as an integer and -0.0 as 0.0, and refuses NUL and half a surrogate
    pair.
    """
    match value:
        case float():
            return repr(value)
        case str():
            plain = value.replace("\0", "\N{SYMBOL FOR NULL}")
            return plain.encode(errors="replace").decode()
        case Mapping():
            return {_storable(str(name)): _storable(item) for name, item in value.items()}
        case list() | tuple():
            return [_storable(item) for item in value]
    return value


def hash_of(previous: str, entry: Entry) -> str:
    """The hash of a row: SHA-256 of ``previous``, a line feed, and the content.

    The content is ASCII JSON with sorted keys.
    """
    ids = [None if each is None else str(each) for each in entry.about]
    content = [
        entry.seq,
        entry.at.astimezone(UTC).isoformat(timespec="microseconds"),
        *ids,
        entry.actor,
        entry.action,
        entry.detail,
    ]
    return sha256(
        f"{previous}\n{json.dumps(content, sort_keys=True, separators=(',', ':'))}".encode()
    ).hexdigest()
