"""The typed reasons why a program could not be started, known before its session runs.

====================== ===========================================================
PROGRAM_NOT_FOUND      no such file, not on PATH, or its ``#!`` interpreter is missing
PROGRAM_NOT_EXECUTABLE there, but not to be run by us or in no known format
CWD_NOT_FOUND          the working directory is missing, no directory, or closed to us
ENV_NOT_ALLOWED        an environment variable that would change which code runs
RESOURCE_EXHAUSTED     no process, memory, descriptor or terminal left; later is fine
START_FAILED           anything else
====================== ===========================================================
"""

import errno

from controller_client.protocol.messages import Failure

_EXHAUSTED = frozenset(
    {errno.EAGAIN, errno.ENOMEM, errno.ENOSPC, errno.EMFILE, errno.ENFILE, errno.EDQUOT}
)


class StartFailed(Exception):
    """The program does not run; ``failure`` says why, for the caller."""

    def __init__(self, code: str, message: str, errno_number: int | None = None) -> None:
        self.failure = Failure(
            code=code, message=message, errno_name=errno.errorcode.get(errno_number or 0)
        )
        super().__init__(f"{code}: {message}")


def from_os_error(error: OSError, what: str) -> StartFailed:
    """Make the failure of ``what``.

    A lack of resources has a code of its own, because a later retry may succeed.
    """
    code = "RESOURCE_EXHAUSTED" if error.errno in _EXHAUSTED else "START_FAILED"
    return StartFailed(code, f"{what}: {error.strerror or error}", error.errno)


def program_not_found(program: str, errno_number: int = errno.ENOENT) -> StartFailed:
    """Make the failure of a program that does not exist."""
    return StartFailed("PROGRAM_NOT_FOUND", f"program not found: {program}", errno_number)


def program_not_executable(program: str, errno_number: int = errno.EACCES) -> StartFailed:
    """Make the failure of a program that exists but that the kernel does not run for us."""
    return StartFailed(
        "PROGRAM_NOT_EXECUTABLE", f"program cannot be executed: {program}", errno_number
    )


def cwd_not_found(cwd: str, errno_number: int = errno.ENOENT) -> StartFailed:
    """Make the failure of a working directory that cannot be entered."""
    return StartFailed("CWD_NOT_FOUND", f"working directory cannot be entered: {cwd}", errno_number)
