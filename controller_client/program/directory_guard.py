"""Checks the directory that a program is started in, and opens it so that it stays the same one.

This is where a program starts, not a jail: once it runs, it can go wherever its user can.
"""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from controller_client.system.absence import is_shortage
from controller_client.system.start_failure import StartFailed, cwd_not_found, from_os_error

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
# On Linux a directory can be entered without being readable.
_OPEN = (getattr(os, "O_PATH", 0) | _FLAGS) if hasattr(os, "O_PATH") else _FLAGS


def open_directory(path: str, roots: Sequence[Sequence[str]]) -> int:
    """Open the directory that ``path`` leads to; each list of ``roots`` must allow it.

    A list allows its directories and what is below them. The path is opened component by component
    without following links, so a link that is put in its way after the check makes this fail.
    Raises StartFailed: CWD_NOT_ALLOWED or CWD_NOT_FOUND, told apart only for what is inside; or
    RESOURCE_EXHAUSTED, if nobody could look.
    """
    real = _real_path(path)
    if real is None or not all(is_within(real, within) for within in roots):
        raise cwd_not_allowed(path)
    try:
        return _open_real(real)
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR} and not is_directory(real):
            raise cwd_not_found(path, errno.ENOTDIR) from None
        if error.errno in {errno.ELOOP, errno.ENOTDIR}:
            raise cwd_not_allowed(path) from None
        if is_shortage(error):
            raise from_os_error(error, "the working directory cannot be opened") from None
        raise cwd_not_found(path, error.errno or errno.ENOENT) from None


def start_directory(wanted: str | None, default: str, roots: Sequence[Sequence[str]]) -> str:
    """Return ``wanted``, else the default if it is allowed, else the first root that exists."""
    if wanted is not None:
        return wanted
    candidates = [default, *(root for within in roots for root in within)]
    for candidate in candidates:
        real = _real_path(candidate)
        if (
            real is not None
            and all(is_within(real, within) for within in roots)
            and is_directory(real)
        ):
            return candidate
    return default


def is_directory(path: str) -> bool:
    """Return whether the path leads to a directory, as far as this user may look.

    Raises StartFailed: RESOURCE_EXHAUSTED, if nobody could look.
    """
    try:
        return stat.S_ISDIR(Path(path).stat().st_mode)
    except ValueError:
        return False
    except OSError as error:
        if is_shortage(error):
            raise from_os_error(error, "the directory cannot be looked at") from None
        return False


def is_within(real: str, roots: Iterable[str]) -> bool:
    """Return whether a real path is one of the roots or below one.

    A root that does not exist has nothing below it.
    """
    for root in roots:
        with suppress(OSError, ValueError):
            top = os.path.realpath(root, strict=True)
            if real == top or real.startswith(top.rstrip("/") + "/"):
                return True
    return False


def cwd_not_allowed(path: str) -> StartFailed:
    """Make the failure of a directory that is outside of the roots."""
    return StartFailed("CWD_NOT_ALLOWED", f"programs may not be started in {path!a}")


def _real_path(path: str) -> str | None:
    """Return the path without links; None if it changes while it is followed, or has a NUL."""
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):
        return None


def _open_real(real: str) -> int:
    descriptor = os.open("/", _OPEN)
    for component in [part for part in real.split("/") if part]:
        try:
            below = os.open(component, _OPEN, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = below
    return descriptor
