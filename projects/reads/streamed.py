"""Answers that stream: their parts are read one by one, while their reader may read them.

A slow reader takes as long as it likes, and may lose its token or its rights meanwhile.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, TypeVar

from projects.storage.access import at_length, in_database

T = TypeVar("T")

CHECK_SECONDS: Final = 2.0
"""The time after which a right that was taken away ends an answer."""


async def streamed(found: Iterator[T], require: Callable[[], None]) -> AsyncIterator[T]:
    """Yields what ``found`` does, each step in a database thread.

    ``require`` raises what breaks the answer off. It is called every CHECK_SECONDS.
    """
    required_at = time.monotonic()
    while (part := await at_length(next, found, None)) is not None:
        if time.monotonic() - required_at >= CHECK_SECONDS:
            await in_database(require)
            required_at = time.monotonic()
        yield part
