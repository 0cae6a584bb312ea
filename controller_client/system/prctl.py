"""Settings that a process makes for itself with prctl(2). Elsewhere than on Linux: nothing."""

import ctypes
import os
import sys
from typing import Final

_DUMPABLE: Final = 4
_NAME: Final = 15
_TIMER_SLACK: Final = 29
_CHILD_SUBREAPER: Final = 36
_NO_NEW_PRIVS: Final = 38
_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Become a child subreaper: descendants that lose their parent come to this process, not init.

    Children do not inherit this.
    """
    _ask(_CHILD_SUBREAPER, 1)


def hide_memory() -> None:
    """Keep other programs of the same user from tracing this process or reading its memory.

    Secrets pass through it. A fork inherits this; a program that is executed does not, and can be
    traced as ever.
    """
    _ask(_DUMPABLE, 0)


def keep_privileges() -> None:
    """Set no_new_privs: set-uid programs give this process and its children no other rights.

    This cannot be undone. Raises OSError.
    """
    if _ask(_NO_NEW_PRIVS, 1):
        raise OSError(ctypes.get_errno(), "prctl")


def call_process(name: bytes) -> None:
    """Set the name that lists of processes show; at most 15 bytes."""
    _ask(_NAME, name)


def be_punctual(slack_nanoseconds: int) -> None:
    """Set how late the kernel may fire timers of this process."""
    _ask(_TIMER_SLACK, slack_nanoseconds)


def _ask(option: int, value: int | bytes) -> int:
    if not sys.platform.startswith("linux"):
        return os.EX_OK
    answer: int = _libc.prctl(option, value, 0, 0, 0)
    return answer
