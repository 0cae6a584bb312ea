"""Looks that a batch of a host takes for the calls of this process that wait for its sessions.

A call that waits offers its look. The transaction that stores news of the session takes the offer,
looks at what it is about to commit, and hands the outcome over after the commit. So the call needs
neither a thread nor a transaction of its own. While the offer is taken the call does not look: two
looks at once could show different output and record both as shown.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextvars import copy_context
from types import TracebackType
from typing import Final, Generic, NamedTuple, Self, TypeVar

from django.db import DatabaseError, InterfaceError

from projects.storage.shared import at_end
from projects.storage.threads import calls_into_this_loop
from projects.wakeups.doorbells import Doorbell

T_co = TypeVar("T_co", covariant=True)

MAX_LOOKS: Final = 32
"""A batch takes at most this many looks; further calls look by themselves."""
LOOKING_SECONDS: Final = 0.02
"""A batch takes no further look after this time: it holds locks, and its host waits."""


class LookFailed(Exception):
    """The database refused a statement of a look. The transaction has to be rolled back."""


class Outcome(NamedTuple, Generic[T_co]):
    """The end of a wait: its value, or the error to raise."""

    value: T_co | None
    error: Exception | None


class Offer(Generic[T_co]):
    """The look of one waiting call, offered inside its context. ``bell`` is woken by an outcome."""

    def __init__(self, session_id: str, look: Callable[[], T_co | None], bell: Doorbell) -> None:
        self.bell = bell
        self.session_id = session_id
        self._look = look
        # Messages are made by looks, too, and depend on the caller of this context.
        self._context = copy_context()
        self._calls = calls_into_this_loop()
        self._is_taken = self._is_withdrawn = False
        self._is_settled = asyncio.Event()
        self._found: Outcome[T_co] | None = None

    def __enter__(self) -> Self:
        with _lock:
            _put(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with _lock:
            self._is_withdrawn = True
            _remove(self)

    async def outcome(self) -> Outcome[T_co] | None:
        """The outcome of the look, after the context; None if the call has to look by itself."""
        if self._is_taken:
            await self._is_settled.wait()
        return self._found

    # ---- in the thread of a transaction ----------------------------------------------------------

    def take(self) -> None:
        """Keep the call, and all others, from this look. Only under the lock."""
        self._is_taken = True
        _remove(self)

    def look(self) -> None:
        """Look, in the transaction. Raises LookFailed."""
        try:
            value = self._context.run(self._look)
        except (DatabaseError, InterfaceError) as error:
            raise LookFailed from error
        except Exception as error:  # noqa: BLE001 - the waiting call raises it
            self._found = Outcome(None, error)
        else:
            self._found = None if value is None else Outcome(value, None)

    def settle(self, is_committed: bool) -> None:
        """End what ``take`` began. A look that found nothing is offered again."""
        if not is_committed:
            self._found = None
        with _lock:
            if self._found is None and not self._is_withdrawn:
                self._is_taken = False
                _put(self)
                return
        self._calls.put(self._end)

    def _end(self) -> None:
        self._is_taken = False
        self._is_settled.set()
        self.bell.wake()


def take_looks(session_ids: Iterable[str]) -> set[Doorbell]:
    """Look for calls that wait for these sessions. Returns those that need no ring any more.

    Their calls get the outcome when the transaction that runs here is committed. Raises LookFailed.
    """
    with _lock:
        offers = [offer for each in session_ids for offer in _offers.get(each, ())]
        taken = offers[:MAX_LOOKS]
        for offer in taken:
            offer.take()
    for offer in taken:
        at_end(offer.settle)
    looked: set[Doorbell] = set()
    deadline = time.monotonic() + LOOKING_SECONDS
    for offer in taken:
        if time.monotonic() < deadline:
            offer.look()
            looked.add(offer.bell)
    return looked


_lock: Final = threading.Lock()
_offers: Final[dict[str, set[Offer[object]]]] = {}


def _put(offer: Offer[object]) -> None:
    _offers.setdefault(offer.session_id, set()).add(offer)


def _remove(offer: Offer[object]) -> None:
    offers = _offers.get(offer.session_id, set())
    offers.discard(offer)
    if not offers:
        _offers.pop(offer.session_id, None)
