"""Which file a listed program name is on this host, under a policy.

A name is looked up on a fixed path, never the caller's, and followed to its real file. A symbolic link counts as its name only if it leads
to a file of that name, or a version of it (``python3`` to ``python3.11``), or to one that is listed by its full path.
"""

import os
import re
from collections.abc import Callable

from controller_client.command_line import resolve_program
from controller_client.command_policy.allowlist import CommandNotAllowed

_VERSION = re.compile(r"[-.]?\d[\d.]*")


def real_file(name: str, search_path: str, is_listed: Callable[[str], bool]) -> str:
    """The absolute real path of the file to execute. Raises CommandNotAllowed, or StartFailed if there is none that can be executed."""
    if "/" in name and not name.startswith("/"):
        raise CommandNotAllowed(name, "a path has to be absolute")
    found = resolve_program(name, search_path, "/")
    real = os.path.realpath(found)
    if not (is_same_program(name, real) or is_listed(real)):
        raise CommandNotAllowed(name, f"on this host it is a link to {real!a}, which is not on the list of allowed commands")
    return real


def is_same_program(name: str, real: str) -> bool:
    """Whether a file's name is that of the program, or of a version of it."""
    wanted, got = name.rsplit("/", 1)[-1], real.rsplit("/", 1)[-1]
    return got == wanted or (got.startswith(wanted) and _VERSION.fullmatch(got[len(wanted) :]) is not None)
