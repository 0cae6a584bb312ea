"""The lookup of a listed program's file on this host, under a policy.

A name is looked up on a fixed path, never the caller's, and followed to its real file. A symbolic
link counts as its name only if it leads to a file of that name, or a version of it (``python3`` to
``python3.11``), or to one that is listed by its full path.
"""

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from controller_client.command_policy.programs import is_interpreter
from controller_client.command_policy.shell_grammar import CommandNotAllowed
from controller_client.program.command_line import resolve_program
from controller_client.system.absence import raise_unknown
from controller_client.system.files.loaded_code import place_others_can_change
from controller_client.system.files.plain_file import open_plain

# The first bytes of executable files: ELF everywhere, and those of macOS and of Windows.
_MACHINE_CODE = {
    "darwin": (b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe", b"\xce\xfa\xed\xfe"),
    "win32": (b"MZ",),
}
_VERSION = re.compile(r"[-.]?\d[\d.]*")


def real_file(name: str, search_path: str, is_listed: Callable[[str], bool]) -> str:
    """Return the absolute real path of the file to execute.

    Raises CommandNotAllowed, or StartFailed if no such file can be executed.
    """
    if "/" in name and not name.startswith("/"):
        raise CommandNotAllowed(name, "a path has to be absolute")
    found = resolve_program(name, search_path, "/")
    real = os.path.realpath(found)
    if not (is_same_program(name, real) or is_listed(real)):
        raise CommandNotAllowed(
            name,
            f"on this host it is a link to {real!a}, which is not on the list of allowed commands",
        )
    return real


def guarded_file(name: str, search_path: str) -> str:
    """Return the file of a program that may read a secret.

    Only root can replace the file, and it is no interpreter, which would run what others write.
    Raises CommandNotAllowed, or StartFailed if no such file can be executed.
    """
    file = real_file(name, search_path, lambda _: False)
    open_place = place_others_can_change(file)
    if open_place is not None:
        raise CommandNotAllowed(name, f"others than root can change {open_place!a}")
    if is_interpreter(name) or is_interpreter(file):
        raise CommandNotAllowed(
            name, "it runs what its arguments say, so it is no program of its own"
        )
    return file


def is_same_program(name: str, real: str) -> bool:
    """Tell whether a file has the program's name, perhaps with a version."""
    wanted, got = name.rsplit("/", 1)[-1], real.rsplit("/", 1)[-1]
    return got == wanted or (
        got.startswith(wanted) and _VERSION.fullmatch(got[len(wanted) :]) is not None
    )


def means(entry: str, program: str) -> bool:
    """Tell whether an entry of the denied programs means ``program``, a name or an absolute path.

    A path means the file that is there now, under whatever name it is called. Raises OSError if the
    files cannot be looked at now.
    """
    if "/" not in entry:
        return is_same_program(entry, program)
    if not program.startswith("/"):
        return False
    try:
        return Path(entry).samefile(program)
    except ValueError:
        # No file has a name with a NUL.
        return False
    except OSError as error:
        raise_unknown(error)
        return entry == program


def is_machine_code(file: str) -> bool:
    """Tell whether the kernel runs the file itself.

    Any other file, and one that is closed to us, counts as a script that another program runs.
    Raises OSError if the file cannot be read now, for want of a descriptor, say.
    """
    try:
        with open_plain(Path(file)) as opened:
            beginning = opened.read(4)
    except OSError as error:
        raise_unknown(error)
        return False
    return beginning.startswith((b"\x7fELF", *_MACHINE_CODE.get(sys.platform, ())))
