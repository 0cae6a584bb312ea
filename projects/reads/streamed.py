"""Answers that stream: their parts are read one by one, while their reader may read them.

A slow reader takes as long as it likes, and may lose its token or its rights meanwhile.
"""

import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final, Generic, TypeVar

from projects.errors.server import StorageUnavailable
from projects.storage.access import at_length, in_database

T = TypeVar("T")

CHECK_SECONDS: Final = 2.0
"""The time after which a right that was taken away ends an answer."""


class Steps(Generic[T]):
    """The parts of a read that takes several hops; an error ends it for good.

    A hop that failed is repeated, but a generator that raised an error is at its end: its repeat
    would find nothing more, and what was read so far would pass for all of it.
    """

    def __init__(self, parts: Iterator[T]) -> None:
        self._parts = parts
        self._error: BaseException | None = None

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if self._error is not None:
            raise StorageUnavailable from self._error
        try:
            return next(self._parts)
        except StopIteration:
            raise
        except BaseException as error:
            self._error = error
            raise


async def streamed(found: Iterator[T], require: Callable[[], None]) -> AsyncIterator[T]:
    """Yields what ``found`` does, each step in a database thread.

    ``require`` raises what breaks the answer off. It is called every CHECK_SECONDS. Raises
    StorageUnavailable if a step fails for the storage: what was yielded is not all.
    """
    steps = Steps(found)
    required_at = time.monotonic()
    while (part := await at_length(next, steps, None)) is not None:
        if time.monotonic() - required_at >= CHECK_SECONDS:
            await in_database(require)
            required_at = time.monotonic()
        yield part
