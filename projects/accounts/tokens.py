"""The text of every secret that is handed out: ``<prefix>_<key id>_<secret>``.

* ``hl``: the API token of a caller
* ``ctl``: the credential of a controller, which its daemon shows
* ``enr``: an enrolment code, with which a host becomes a controller

The key id is public: rows are found by it and audit rows name it. The secret has 256 random bits
and is shown once, when it is made; the database holds its SHA-256. A slow hash would protect no
better, since nobody can try 2**256 secrets.
"""

import re
import secrets
from hashlib import sha256
from typing import Final, NamedTuple

from projects.errors.access import Unauthenticated

API_PREFIX: Final = "hl"
CONTROLLER_PREFIX: Final = "ctl"
ENROLMENT_PREFIX: Final = "enr"
_TOKEN: Final = re.compile(r"(hl|ctl|enr)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")


class ShownToken(NamedTuple):
    """A token as somebody shows it. It has the form of a token; nobody has looked it up yet."""

    key_id: str
    secret: str


class NewToken(NamedTuple):
    """A token that was just made. ``text`` is the whole of it, for the one time it is shown."""

    key_id: str
    secret: str
    text: str


def make_token(prefix: str) -> NewToken:
    """Makes a new token of the kind ``prefix``. Nothing is stored."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return NewToken(key_id, secret, f"{prefix}_{key_id}_{secret}")


def digest_of(secret: str) -> str:
    """The SHA-256 of a secret in hexadecimal: the only form in which it is stored."""
    return sha256(secret.encode()).hexdigest()


def parse_token(text: str, prefix: str) -> ShownToken:
    """Takes the text of a token apart.

    Raises:
        Unauthenticated: if ``text`` is not a token of the kind ``prefix``.

    """
    match = _TOKEN.fullmatch(text.strip())
    if match is None or match[1] != prefix:
        raise Unauthenticated
    return ShownToken(key_id=match[2], secret=match[3])


def shown_token(header: str | None, prefix: str = API_PREFIX) -> ShownToken:
    """Takes the token out of an ``Authorization`` header.

    Args:
        header: the header's value, ``Bearer <token>``; None if the request has no such header.
        prefix: the kind of token that is expected.

    Raises:
        Unauthenticated: if the header has no token of this kind.

    """
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated
    return parse_token(token, prefix)
