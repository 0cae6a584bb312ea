"""Keys the server makes for itself on first use, one per file, readable by its user alone."""

import os
import tempfile
from collections.abc import Callable
from pathlib import Path


def read_or_make_key(path: Path, make: Callable[[], str]) -> str:
    """The key in ``path``; made with ``make`` if there is none. Several processes may start at once: one key wins.

    Raises OSError where the directory cannot be written.
    """
    if not path.exists():
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # mkstemp: readable by us alone, and a name nobody else has, also not one left behind by a crash.
        descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        draft = Path(name)
        with os.fdopen(descriptor, "w") as file:
            file.write(make() + "\n")
            file.flush()
            os.fsync(file.fileno())
        try:
            # A link either appears whole or not at all, and never replaces another process's key.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
    return path.read_text().strip()
