"""The build of the daemon: its version and a digest of its own code."""

import re
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from controller_client import __version__

_DIGITS = 8


def is_older(version: str, than: str) -> bool:
    """True if ``version`` is of an older release; False if one of both says no release."""
    ours, theirs = _release(version), _release(than)
    return bool(ours and theirs) and ours < theirs


def _release(version: str) -> tuple[int, ...]:
    """The numbers with which a version begins, such as (0, 2, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(int(number) for number in found[0].split(".")) if found else ()


@lru_cache(maxsize=1)
def build_version() -> str:
    """Return a text such as ``0.2.0.dev0+1f3a90c2``, of at most 32 characters.

    The digest changes with every change of the code, and does not depend on the place of the code.
    """
    root, digest = Path(__file__).parents[1], sha256()
    for path in sorted(root.rglob("*.py"), key=lambda path: path.relative_to(root).parts):
        digest.update(f"{path.relative_to(root).as_posix()}\0".encode())
        digest.update(path.read_bytes())
    return f"{__version__}+{digest.hexdigest()[:_DIGITS]}"
