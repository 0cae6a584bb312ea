"""Doorbells: messages that only say "look again" (``projects.wakeups.bus``).

A doorbell may be lost, doubled or late. So each waiter also looks once per
``conf.safety_net_seconds``, and only latency depends on doorbells.
"""

import asyncio
from collections.abc import Container
from types import TracebackType
from typing import Self
from uuid import UUID

from projects.conf import conf
from projects.wakeups.bus import exchange


def session_group(session_id: UUID | str) -> str:
    """The doorbell that is rung when a session advanced."""
    return f"session.{session_id}"


def controller_group(controller_id: UUID | str) -> str:
    """The doorbell that is rung when a controller's outbox has something new."""
    return f"controller.{controller_id}"


def return_group(controller_id: UUID | str) -> str:
    """The doorbell that is rung when a controller has connected."""
    return f"return.{controller_id}"


def question_group(question_id: UUID | str) -> str:
    """The doorbell that is rung when a question about a file was answered."""
    return f"question.{question_id}"


def files_group(controller_id: UUID | str) -> str:
    """The doorbell that is rung when there is a new question about a controller's files."""
    return f"files.{controller_id}"


def echo_group(controller_id: UUID | str) -> str:
    """The doorbell that is rung when somebody wants to know a host's echo time now."""
    return f"echo.{controller_id}"


def approval_group(approval_id: int) -> str:
    """The doorbell that is rung when a person answered a question about a call."""
    return f"approval.{approval_id}"


async def ring_session(
    session_id: UUID | str, *, besides: Container["Doorbell"] = frozenset()
) -> None:
    """Wake the callers that wait for the session. No ring ever waits or raises.

    Those in ``besides`` have seen already what it is rung for.
    """
    exchange().ring(session_group(session_id), besides=besides)


async def ring_controller(controller_id: UUID | str) -> None:
    """Wake the connection that serves the controller.

    Shortly after a host connected again, the ring may reach only its old connection. The reconciler
    then rings the new one.
    """
    exchange().ring_one(controller_group(controller_id))


async def ring_return(controller_id: UUID | str) -> None:
    """Wake the calls that wait for the controller to return."""
    exchange().ring(return_group(controller_id))


async def ring_files(controller_id: UUID | str) -> None:
    """Wake the connection that asks the controller about its files."""
    exchange().ring_one(files_group(controller_id))


async def ring_echo(controller_id: UUID | str) -> None:
    """Wake the connection that measures the controller's echo time."""
    exchange().ring_one(echo_group(controller_id))


async def ring_question(question_id: UUID | str) -> None:
    """Wake the call that waits for the answer to a question."""
    exchange().ring(question_group(question_id))


async def ring_approval(approval_id: int) -> None:
    """Wake the calls that wait for the person's answer."""
    exchange().ring(approval_group(approval_id))


class Doorbell:
    """A listener for one doorbell, inside its context.

    Use it as ``async with session_doorbell(id) as bell: await bell.wait(timeout)``. Rings that come
    between two waits are kept as one. If no ring gets through, every wait takes its timeout.
    """

    def __init__(self, group: str, session_id: UUID | str | None = None) -> None:
        self._group = group
        self.session_id = session_id
        self._woken = asyncio.Event()
        self._is_rung = False

    async def __aenter__(self) -> Self:
        exchange().join(self._group, self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        exchange().leave(self._group, self)

    def set(self) -> None:
        """Hear that the doorbell was rung."""
        self._is_rung = True
        self._woken.set()

    def wake(self) -> None:
        """End the wait of this listener without a ring."""
        self._woken.set()

    async def rung(self) -> bool:
        """Wait for a ring without a timeout. Returns False if ``wake`` alone ended the wait.

        Use it for work that the reconciler of the process looks for
        (``projects.wakeups.reconciler``), or for work that comes anyway in a while.
        """
        await self._woken.wait()
        return self._heard()

    async def wait(self, timeout: float) -> bool:
        """Wait for a ring, then look again in any case.

        Returns True as soon as it rings, and False after ``timeout`` seconds, or after
        ``conf.safety_net_seconds`` if that is shorter.
        """
        if not self._woken.is_set():
            try:
                async with asyncio.timeout(max(0.0, min(timeout, conf.safety_net_seconds))):
                    await self._woken.wait()
            except TimeoutError:
                return False
        return self._heard()

    def _heard(self) -> bool:
        is_rung, self._is_rung = self._is_rung, False
        self._woken.clear()
        return is_rung


def session_doorbell(session_id: UUID | str) -> Doorbell:
    """A listener that hears when the session advances."""
    return Doorbell(session_group(session_id), session_id)


def controller_doorbell(controller_id: UUID | str) -> Doorbell:
    """A listener that hears when the controller's outbox has something new."""
    return Doorbell(controller_group(controller_id))
