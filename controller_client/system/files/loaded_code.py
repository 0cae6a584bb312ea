"""Checks the code that a process has mapped besides its own file: may others have written it?

An option, or a configuration file of the user, can make a program load a library. The program then
does what the library says, although the file it was started from is still the right one.
"""

import stat
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.system.absence import raise_shortage

_KERNELS_OWN: Final = frozenset({"[vdso]", "[vsyscall]"})


def place_others_can_change(file: str) -> str | None:
    """Return the file, or a directory above it, if others than root can change it; else None.

    Raises OSError.
    """
    for path in (Path(file), *Path(file).parents):
        status = path.stat()
        # Others may add to a directory like /tmp, but not replace what is root's there.
        is_open = bool(status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)) and not (
            path.is_dir() and status.st_mode & stat.S_ISVTX
        )
        if status.st_uid != 0 or is_open:
            return str(path)
    return None


def has_code_of_others(pid: int) -> bool | None:
    """Return whether the process has mapped code that others than root can write.

    Code that is in no file any more counts, too. None if the kernel does not tell. Raises OSError
    when no descriptor or no memory is left to look with.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        lines = Path(f"/proc/{pid}/maps").read_text(errors="surrogateescape").splitlines()
    except OSError as error:
        raise_shortage(error)
        return None
    sources = set()
    for line in lines:
        # Address, rights, offset, device, inode, and what it is of, with the blanks it has.
        address, rights, *_ = fields = line.split(maxsplit=5)
        if "x" in rights:
            sources.add(fields[5] if len(fields) > 5 else address)
    return any(_is_of_others(source) for source in sources - _KERNELS_OWN)


def _is_of_others(source: str) -> bool:
    with suppress(OSError):
        return not source.startswith("/") or place_others_can_change(source) is not None
    return True
