"""Values of columns as the database in use stores them, for hand-written statements."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import Any, Final
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, F, Func
from django.utils import timezone

from controller_client.protocol.messages import HostTime

_WORDS: Final = re.compile(r"""[\w\s.,=%()'"<>*:]*""")


def sql(template: str, **words: object) -> str:
    """A statement with words of our own in the places that ``template`` names.

    Values that anybody else chose are parameters, never words. Raises ValueError for a word with a
    character that names, conditions and numbers do not need, such as a semicolon.
    """
    for name, word in words.items():
        if _WORDS.fullmatch(str(word)) is None:
            raise ValueError(f"{name} is not a word of a statement")
    return template.format(**words)


def is_one_of(column: str, values: Sequence[str]) -> Func:
    """A condition for a queryset whose values stand in the statement, as in that of an index.

    SQLite does not find an index of some rows only by parameters. The values are words of ours.
    """
    words = ", ".join(map(repr, values))
    # SQLite takes these two for different conditions, also of one value.
    condition = f"IN ({words})" if len(values) > 1 else f"= {words}"
    return Func(F(column), template=f"%(expressions)s {condition}", output_field=BooleanField())


@lru_cache(maxsize=8192)
def as_uuid(text: str) -> UUID:
    """The UUID that ``text`` names, which is kept: each turn meets the same few ids many times.

    Raises ValueError if it names none.
    """
    return UUID(text)


def as_parameter(value: UUID) -> UUID | str:
    """A UUID as this database stores it."""
    return value.hex if is_sqlite() else value


def time_as_parameter(value: datetime | None) -> datetime | str | None:
    """A time as this database stores it."""
    if value is None or not is_sqlite():
        return value
    # Nearly all times are in UTC already, and a turn has several.
    moment = value if value.tzinfo is UTC else value.astimezone(UTC)
    return moment.isoformat(" ").removesuffix("+00:00")


def host_columns(at: HostTime | None) -> tuple[datetime | str | None, float | None]:
    """The parameters of the columns ``host_time`` and ``host_clock``."""
    if at is None:
        return None, None
    return time_as_parameter(datetime.fromtimestamp(at.wall, UTC)), at.clock


@cache
def is_sqlite() -> bool:
    """True if the database is SQLite, which stores ids and times as text.

    The answer is kept. Django would look for the connection of the thread each time.
    """
    return connection.vendor == "sqlite"


def as_json(value: Any) -> Any:
    """The value in a column of JSON. A hand-written statement may return it as text."""
    return json.loads(value) if isinstance(value, str) else value


def as_time(value: Any) -> datetime | None:
    """A time from a hand-written statement, with its time zone.

    SQLite returns UTC without saying so: as text or, for columns it knows, as a naive datetime.
    """
    if value is None:
        return None
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return timezone.make_aware(moment, UTC) if timezone.is_naive(moment) else moment
