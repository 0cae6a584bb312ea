"""Looks at the files that commands name, in threads of their own.

A directory may be on a mount that answers no more. A look there never ends, and must not keep the
threads that end programs and find the server.
"""

import asyncio
from collections.abc import Callable
from errno import EAGAIN, ETIMEDOUT
from functools import partial
from typing import Final, ParamSpec, TypeVar

from controller_client.server_link.ready_threads import ready_executor

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 4
MOST_LOOKS: Final = 64
"""At most so many looks are under way or wait for a thread."""


class FileLooks:
    """The looks of one daemon."""

    def __init__(self) -> None:
        self._threads = ready_executor(THREADS, "files")
        self._count = 0

    async def take(
        self, seconds: float, look: Callable[P, T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return what ``look`` returns, and raise what it raises.

        Raises OSError: ETIMEDOUT after so many seconds, EAGAIN if too many looks are under way.
        """
        if self._count >= MOST_LOOKS:
            raise OSError(EAGAIN, "too many files are being looked at")
        self._count += 1
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.get_running_loop().run_in_executor(
                    self._threads, partial(look, *args, **kwargs)
                )
        except TimeoutError:
            raise OSError(ETIMEDOUT, "the files did not answer in time") from None
        finally:
            self._count -= 1
