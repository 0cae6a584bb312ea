"""Masks secrets in what the server renders.

The host masks bytes as they come. It cannot see a secret that a program draws with cursor
movements: only the rendered text has it whole. So the values that were typed into a session are
kept with it, sealed, for as long as its output.
"""

import base64
import json
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.db import connection

from controller_client.protocol.limits import MIN_MASKED_BYTES
from controller_client.protocol.terminal_text.unseen import SPELLED_OUT
from projects.models import CommandSession, RecordingScreen
from projects.storage.columns import as_parameter
from projects.storage.sealing import open_or_none, reseal, seal

logger = logging.getLogger(__name__)

MASK: Final = "******"
# No secret begins with it: a secret has no control characters.
_UNOPENED: Final = "\0sealed:"
# Between two letters of a secret: the end of a screen's line, and characters that cannot be seen,
# which most views spell out.
_BETWEEN: Final = f"(?:[\n\u180b-\u180f\u200b-\u200d\u2060\ufe00-\ufe0f\ufeff]|{SPELLED_OUT})*"
_SEALED: Final = "SELECT sealed_secrets FROM projects_commandsession WHERE id = %s"


@dataclass(frozen=True, slots=True)
class SecretMask:
    """The mask of one session. ``found`` is None where no secret was typed."""

    found: re.Pattern[str] | None = None

    def masked(self, text: str) -> str:
        """The text without the secrets; the ends of lines within one stay."""
        if self.found is None:
            return text
        return self.found.sub(lambda match: MASK + "\n" * match[0].count("\n"), text)


def secret_mask(session_id: UUID) -> SecretMask:
    """The mask for everything of the session that is rendered. Call it in a database thread."""
    with connection.cursor() as cursor:
        cursor.execute(_SEALED, [as_parameter(session_id)])
        row = cursor.fetchone()
    return mask_of(session_id, None if row is None else row[0])


def mask_of(session_id: UUID, sealed: bytes | memoryview | None) -> SecretMask:
    """The mask of a session whose row was read already."""
    values = _opened(session_id, sealed)
    forms = [
        _BETWEEN.join(map(re.escape, value))
        for value in sorted(values, key=len, reverse=True)
        if len(value.encode()) >= MIN_MASKED_BYTES and not value.startswith(_UNOPENED)
    ]
    return SecretMask(re.compile("|".join(forms)) if forms else None)


def secret_remember(session_id: UUID, value: bytes) -> None:
    """Notes that ``value`` is typed into the session, in the transaction that has it typed.

    Screens that were kept for jumps may show the value, so they are made again when they are asked
    for. Earlier values that no key opens now are kept as they are, for the day the key is back.
    """
    session = CommandSession.objects.only("sealed_secrets").get(id=session_id)
    sealed = session.sealed_secrets
    values = _opened(session_id, sealed)
    if (text := value.decode(errors="replace")) not in values:
        if sealed is not None and open_or_none(sealed, _what(session_id)) is None:
            logger.error("%s is kept, and masked once its key is back", _what(session_id))
            values = [_UNOPENED + bytes(sealed).decode()]
        CommandSession.objects.filter(id=session_id).update(
            sealed_secrets=_sealed(session_id, (*values, text))
        )
        RecordingScreen.objects.filter(session_id=session_id).delete()


def masks_reseal(session_id: UUID, sealed: bytes | memoryview) -> bytes:
    """Seals a session's values with the newest key, none of them within another.

    Raises InvalidToken if no key opens one of them.
    """
    values = _opened(session_id, sealed)
    if not values:
        return reseal(sealed)
    if any(value.startswith(_UNOPENED) for value in values):
        raise InvalidToken
    return _sealed(session_id, values)


def _sealed(session_id: UUID, values: Iterable[str]) -> bytes:
    body = json.dumps([base64.b64encode(value.encode()).decode() for value in values])
    return seal(session_id.bytes + body.encode())


def _opened(session_id: UUID, sealed: bytes | memoryview | None) -> Sequence[str]:
    if sealed is None:
        return ()
    plain = open_or_none(sealed, _what(session_id))
    if plain is None:
        return ()
    if plain[:16] != session_id.bytes:
        logger.error("%s is of another session, and is not masked", _what(session_id))
        return ()
    values: list[str] = []
    for value in json.loads(plain[16:]):
        text = base64.b64decode(value).decode()
        if text.startswith(_UNOPENED):
            # As it is where no key fits: the next value is written with it.
            inner = _opened(session_id, text.removeprefix(_UNOPENED).encode())
            values += inner or [text]
        else:
            values.append(text)
    return values


def _what(session_id: UUID) -> str:
    return f"what was typed into session {session_id} in secret"
