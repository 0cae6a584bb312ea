"""Keys that the server makes on first use, one per file, readable only by the server's user."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def read_or_make_key(path: Path, make: Callable[[], str]) -> str:
    """The key in ``path``; if the file is missing, ``make`` makes the key.

    Several processes may start at the same time: all of them return the one key that was stored.

    Raises OSError if the directory cannot be written.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp makes the file readable by this user alone, under a name that is not in use, not
        # even by a file that a crash left behind.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        draft = Path(name)
        with os.fdopen(descriptor, "w") as file:
            file.write(make() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            # The link appears with the whole key in it, and never replaces another process's key.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
