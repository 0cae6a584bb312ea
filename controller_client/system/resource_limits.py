"""Limits of what a program may use: the lower of what was asked for and what the host allows.

They are set between fork and exec.

A limit that a control group already holds for the session as a whole is not set again for its
processes. Without one, the limit of processes counts all of the user's, and the kernel does not
apply it to root.
"""

import resource
from typing import Final

from controller_client.protocol.messages import ResourceLimits

NO_LIMITS: Final = ResourceLimits()
_KINDS: Final = (
    ("processes", resource.RLIMIT_NPROC),
    ("memory_bytes", resource.RLIMIT_AS),
    ("file_size_bytes", resource.RLIMIT_FSIZE),
    ("open_files", resource.RLIMIT_NOFILE),
)


def lowest(asked: ResourceLimits, allowed: ResourceLimits) -> ResourceLimits:
    """Return the lower of each two limits; None means no limit."""
    return ResourceLimits(
        **{name: _lower(getattr(asked, name), getattr(allowed, name)) for name, _ in _KINDS}
    )


def open_files_allowed() -> int:
    """Return how many files the calling process may have open."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def forbid_core_files() -> None:
    """Forbid core files to the calling process and to what it starts.

    A core file of a program that held a secret would outlive the session.
    """
    _set(resource.RLIMIT_CORE, 0)


def apply(limits: ResourceLimits) -> None:
    """Limit the calling process; it cannot raise these limits again."""
    for name, kind in _KINDS:
        limit: int | None = getattr(limits, name)
        if limit is not None:
            _set(kind, limit)


def _set(kind: int, limit: int) -> None:
    hard = resource.getrlimit(kind)[1]
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(kind, (limit, limit))


def _lower(first: int | None, second: int | None) -> int | None:
    return min((limit for limit in (first, second) if limit is not None), default=None)
