"""The address of the static files, which is another one whenever a file is another one.

So browsers keep files for good, and no page gets the scripts of another version. The modules of a
page import each other by relative names and need no rewriting, and nothing has to be collected
before a start.
"""

from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Final

import django

_STATIC: Final = ("console/static", "projects/static")
# The files of others are those that the lock names, wherever and whenever they are fetched.
_LOCK: Final = "console/browser/package-lock.json"
_VENDOR: Final = "console/static/console/vendor"


def static_address(root: Path) -> str:
    """``static/`` and a digest of all files of the checkout or image at ``root``."""
    digest = sha256(django.__version__.encode())
    for path in _files(root):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes())
    return f"static/{digest.hexdigest()[:12]}/"


def _files(root: Path) -> Iterator[Path]:
    for place in _STATIC:
        for path in sorted((root / place).rglob("*")):
            if path.is_file() and not path.is_relative_to(root / _VENDOR):
                yield path
    yield root / _LOCK
