"""A limit of open files that is too low is told as what it is, and not as a fault of a file."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager

from controller_client.config.errors import ConfigurationError
from controller_client.system.resource_limits import open_files_allowed


@contextmanager
def enough_open_files() -> Iterator[None]:
    """Raise ConfigurationError with the limit if the block fails because of the limit."""
    try:
        yield
    except (OSError, ConfigurationError) as error:
        cause = error if isinstance(error, OSError) else error.__context__
        if not isinstance(cause, OSError) or cause.errno != errno.EMFILE:
            raise
        raise ConfigurationError(
            f"the limit of open files is {open_files_allowed()} (RLIMIT_NOFILE), which is too low: "
            "raise it, with LimitNOFILE=1024 in the unit or ulimit -n 1024 in the shell that "
            "starts the daemon"
        ) from None
