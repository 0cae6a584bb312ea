"""The check of one call's API token, inside the first hop that the call makes anyway.

Who showed a token before is remembered, by the digest of its secret. That is enough to read the
request and to choose the tool, and it allows nothing: the row of the token is read in the first hop
of the call, in its thread, before the work of the hop begins. If the token is refused then, or its
caller is another one now, the hop does nothing (``NotLetThrough``).
"""

import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

from projects.accounts.authentication import Caller, find_caller
from projects.accounts.errors import RateLimited
from projects.accounts.guesses import limited_guesses, meter_of, refuse_blocked
from projects.accounts.tokens import ShownToken, digest_of, shown_token
from projects.errors.access import Unauthenticated
from projects.errors.base import ControllerActionError
from projects.storage.access import NotLetThrough, checked_by, in_database

T = TypeVar("T")

_MAX_REMEMBERED: Final = 4096
_remembered: dict[tuple[str, str], Caller] = {}
"""(key id, digest of the secret) -> the caller when the token was checked last."""


async def authenticate_api_token(header: str | None, peer: str = "") -> Caller:
    """Finds the caller whose API token a request shows.

    Args:
        header: the value of ``Authorization``; None if the request has no such header.
        peer: the address that the request came from; wrong secrets are counted by its network.

    Raises:
        Unauthenticated: if the header has no valid token. The reason is not told.
        RateLimited: if too many wrong tokens were shown.
        StorageUnavailable: if the token could not be looked up.

    """
    return await TokenCheck(shown_token(header), peer).caller()


class TokenCheck:
    """The check of the token that one call shows."""

    def __init__(self, token: ShownToken, peer: str = "") -> None:
        self._token, self._peer = token, peer
        self._key = (token.key_id, digest_of(token.secret))
        self._presumed: Caller | None = _remembered.get(self._key)
        self._verdict: Caller | ControllerActionError | None = None
        self._lock = threading.Lock()

    async def presumed(self) -> Caller:
        """The caller if nothing has changed since the token was checked last.

        A token that is not remembered is checked at once. Raises as ``caller`` does.
        """
        if self._presumed is None:
            self._presumed = await self.caller()
        refuse_blocked(meter_of(self._token, self._peer))
        return self._presumed

    async def caller(self) -> Caller:
        """The caller, checked; in a hop of its own if no hop of the call has done it.

        Raises:
            Unauthenticated: if the token is not valid. The reason is not told.
            RateLimited: if too many wrong tokens were shown.
            StorageUnavailable: if the token could not be looked up.

        """
        async with limited_guesses(self._token, self._peer):
            verdict = await self._checked()
            if isinstance(verdict, ControllerActionError):
                _remembered.pop(self._key, None)
                raise verdict
            self._remember(verdict)
            return verdict

    async def has_passed(self) -> bool:
        """True if the presumed caller is the caller; in a hop of its own if need be."""
        return await self._checked() == self._presumed

    async def during(self, act: Callable[[Caller], Awaitable[T]]) -> T:
        """Returns the result of ``act`` with the presumed caller, which is the caller.

        Raises:
            NotLetThrough: if it is not. Nothing that ``act`` does in the database was begun;
                ``caller`` tells what is the matter.
            StorageUnavailable: if the token could not be looked up.

        """
        presumed = await self.presumed()
        with checked_by(self._let_through):
            result = await act(presumed)
        if not await self.has_passed():
            raise NotLetThrough
        return result

    async def _checked(self) -> Caller | ControllerActionError:
        return await in_database(self._look) if self._verdict is None else self._verdict

    def _let_through(self) -> None:
        if (self._verdict or self._look()) != self._presumed:
            raise NotLetThrough

    def _look(self) -> Caller | ControllerActionError:
        """Reads the row, once for all hops of the call. Runs in a database thread."""
        with self._lock:
            if self._verdict is None:
                try:
                    self._verdict = find_caller(self._token, meter_of(self._token, self._peer))
                except (Unauthenticated, RateLimited) as refusal:
                    self._verdict = refusal
            return self._verdict

    def _remember(self, caller: Caller) -> None:
        if len(_remembered) >= _MAX_REMEMBERED and self._key not in _remembered:
            # Whoever is forgotten costs one hop more at the next call.
            _remembered.pop(next(iter(_remembered)))
        _remembered[self._key] = caller
