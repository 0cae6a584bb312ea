"""The files below a directory that programs are using: what goes away meanwhile is left out."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def contents_below(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every plain file below a directory, with what is in it."""
    for place, _, names in os.walk(directory):
        for path in (Path(place, name) for name in names):
            with suppress(FileNotFoundError):
                if path.is_file() and not path.is_symlink():
                    yield path, path.read_bytes()
