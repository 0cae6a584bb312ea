"""A limit on wrong secrets: a key id or a name is refused for a while after too many of them.

Wrong secrets are counted by key id and network of the caller, in a meter that all processes share.
A right secret reads the meter at most once in ``ROOM_SECONDS``, so a block that another process
made holds here a moment later. A block that this process made holds at once.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final

from projects.accounts.client_address import network_of
from projects.accounts.errors import RateLimited
from projects.accounts.rate_limits import rate_check, rate_give_back, rate_take
from projects.accounts.tokens import ShownToken
from projects.conf import conf
from projects.errors.access import Unauthenticated
from projects.storage.access import in_database

ROOM_SECONDS: Final = 1.0
"""A meter that had room is not read again before this."""
_FAILED_LOGINS: Final = "failed logins"
_MAX_METERS: Final = 4096
# Once a name is guessed at from many addresses, each address has only this part of the rate. That
# slows guessing down and locks nobody out.
_SLOWED_PART: Final = 10

_network_of: Final = lru_cache(maxsize=1024)(network_of)

_blocked_until: dict[str, float] = {}
"""Meter -> moment of ``time.monotonic()``. Further guesses cost no statement until then."""
_room_until: dict[str, float] = {}
"""Meter -> moment of ``time.monotonic()`` until which the meter is taken to have room."""


class UnknownKeyError(Unauthenticated):
    """No row has the key id that was shown."""


def meter_of(token: ShownToken, peer: str) -> str:
    """The meter that counts guesses at this key id from the peer's network."""
    return f"login {_network_of(peer)} {token.key_id}"


def refuse_blocked(meter: str) -> None:
    """Costs no statement.

    Raises:
        RateLimited: if this process knows that the meter is full.

    """
    remaining_seconds = _blocked_until.get(meter, 0.0) - time.monotonic()
    if remaining_seconds > 0:
        raise RateLimited(_FAILED_LOGINS, remaining_seconds)


def require_room(meter: str) -> None:
    """Runs in a database thread, before a secret is compared.

    Raises:
        RateLimited: if the meter is full.

    """
    if _room_until.get(meter, 0.0) > time.monotonic():
        return
    rate_check(meter, conf.login_failures_per_minute, _FAILED_LOGINS)
    _note(_room_until, meter, ROOM_SECONDS)


@asynccontextmanager
async def limited_guesses(token: ShownToken, peer: str) -> AsyncIterator[str]:
    """Counts an ``Unauthenticated`` in its block as a guess; too many guesses block the key id.

    Yields:
        The name of the meter. The block has to call ``require_room`` with it.

    Raises:
        RateLimited: before the block or out of it, if the meter is full.

    """
    meter = meter_of(token, peer)
    refuse_blocked(meter)
    try:
        yield meter
    except UnknownKeyError:
        # Anybody can invent key ids. With a meter each, no meter would ever be full.
        await in_database(_count_guess, f"login {_network_of(peer)}")
        raise Unauthenticated from None
    except Unauthenticated:
        _room_until.pop(meter, None)
        await in_database(_count_guess, meter)
        raise
    except RateLimited as error:
        _note(_blocked_until, meter, error.retry_after_seconds)
        raise


def _count_guess(meter: str) -> None:
    rate_take(meter, 1, conf.login_failures_per_minute, _FAILED_LOGINS)


def _note(moments: dict[str, float], meter: str, seconds: float) -> None:
    if len(moments) >= _MAX_METERS:
        # The database still knows which meters are full; this only saves asking it.
        moments.clear()
    moments[meter] = time.monotonic() + seconds


class PasswordAttempt:
    """One attempt to show the password of ``name`` from the address ``peer``."""

    def __init__(self, name: str, peer: str) -> None:
        known_as = name.casefold()[:64]
        per_minute = conf.login_failures_per_minute
        slowed = max(1, per_minute // _SLOWED_PART) if per_minute > 0 else 0
        self._of_address = (f"password {_network_of(peer)} {known_as}", per_minute)
        self._of_name = (f"password of {known_as}", per_minute)
        self._slowed = (f"slow password {_network_of(peer)} {known_as}", slowed)
        self._taken: list[tuple[str, int]] = []

    def take(self) -> None:
        """Counts the attempt. Raises RateLimited, and then the attempt does not count.

        Each meter is read and raised in one statement, so that no attempt of many at once slips
        through.
        """
        self._take(self._of_address)
        try:
            self._take(self._of_name)
        except RateLimited:
            try:
                self._take(self._slowed)
            except RateLimited:
                self.forgive()
                raise

    def forgive(self) -> None:
        """Takes the attempt back: the password was right, or was not looked at."""
        while self._taken:
            meter, per_minute = self._taken.pop()
            rate_give_back(meter, 1, per_minute)

    def _take(self, meter: tuple[str, int]) -> None:
        rate_take(meter[0], 1, meter[1], _FAILED_LOGINS)
        self._taken.append(meter)
