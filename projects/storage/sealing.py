"""Encrypts what a copy of the database must not show, and signs, with the keys of the server.

Secrets and the bodies of commands are encrypted. The same keys sign marks of the audit log.
"""

import hmac
import logging
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256

from cryptography.fernet import Fernet, InvalidToken, MultiFernet

from projects.conf import conf

logger = logging.getLogger(__name__)


def seal(plain: bytes) -> bytes:
    """Encrypts ``plain`` with the newest key."""
    return _fernet(conf.encryption_keys).encrypt(plain)


def open_sealed(sealed: bytes | memoryview) -> bytes:
    """Decrypts what any of the keys sealed.

    Raises cryptography.fernet.InvalidToken if none of them did.
    """
    return _fernet(conf.encryption_keys).decrypt(bytes(sealed))


def open_or_none(sealed: bytes | memoryview, what: str) -> bytes | None:
    """Decrypts as ``open_sealed`` does. Returns None if no key fits, and logs ``what`` that is.

    For readers of many rows: one row whose key is gone must not stop the others.
    """
    try:
        return open_sealed(sealed)
    except InvalidToken:
        logger.error(
            "%s cannot be decrypted: is a key missing from HOLDLINE_ENCRYPTION_KEYS?", what
        )
        return None


def reseal(sealed: bytes | memoryview) -> bytes:
    """Encrypts with the newest key what any of the keys sealed. Raises as ``open_sealed`` does."""
    return _fernet(conf.encryption_keys).rotate(bytes(sealed))


def signatures(purpose: bytes, content: bytes) -> Iterator[str]:
    """Yield the signature of ``content`` with each key, the newest key first.

    A signature for one ``purpose`` proves nothing for another.
    """
    for key in conf.encryption_keys:
        secret = hmac.digest(key.encode(), purpose, sha256)
        yield hmac.new(secret, content, sha256).hexdigest()


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
