"""Seals what must not be readable in a copy of the database: secrets, and bodies of commands, which may hold one."""

from functools import lru_cache

from cryptography.fernet import Fernet, MultiFernet

from projects.conf import conf


def seal(plain: bytes) -> bytes:
    """``plain`` under the newest key."""
    return _fernet(conf.encryption_keys).encrypt(plain)


def open_sealed(sealed: bytes | memoryview) -> bytes:
    """What was sealed, under any of the keys. Raises cryptography.fernet.InvalidToken if it was not sealed by one of them."""
    return _fernet(conf.encryption_keys).decrypt(bytes(sealed))


def reseal(sealed: bytes | memoryview) -> bytes:
    """What was sealed under any of the keys, under the newest one. Raises as ``open_sealed``."""
    return _fernet(conf.encryption_keys).rotate(bytes(sealed))


@lru_cache(maxsize=4)
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    return MultiFernet([Fernet(key) for key in keys])
