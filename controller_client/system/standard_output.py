"""Ends a command quietly once nobody reads its output: ``command | head`` is no mistake."""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_READER_GONE = 141
"""The exit code that a shell shows for a program ended by SIGPIPE: 128 and the signal's number."""


@contextmanager
def reader_may_go() -> Iterator[None]:
    """End the process with EXIT_READER_GONE if the reader of its output goes away in the block.

    Nothing is printed then. Any other broken connection stays the error that it is. SIGPIPE itself
    stays ignored: with its default action, any broken socket would end a server.
    """
    try:
        try:
            yield
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        gone = [number for number in (1, 2) if _is_gone(number)]
        if not gone:
            raise
        # The interpreter flushes once more when it ends.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for number in gone:
            os.dup2(nowhere, number)
        os.close(nowhere)
        sys.exit(EXIT_READER_GONE)


def _is_gone(descriptor: int) -> bool:
    """Return whether the other end of a pipe or a connection is closed."""
    poll = select.poll()
    poll.register(descriptor, 0)
    return any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
