"""The reading of a file that an operator wrote, and that nobody else may have changed."""

import os
import stat
from pathlib import Path
from typing import Final

from controller_client.config.errors import ConfigurationError
from controller_client.system.files.open_place import is_open_to_all

_MAX_BYTES: Final = 1 << 20


def read_owned_file(what: str, path: Path, *, option: str | None = None) -> str:
    """Return the text of ``path``, which ``what`` names in errors. ``option`` can name another.

    The file belongs to root or to this user, and others can neither write nor replace it. Raises
    ConfigurationError, and ValueError if the file is not UTF-8.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        other = f"; name another with {option}" if option else ""
        raise ConfigurationError(f"cannot open {what} {path}: {error.strerror}{other}") from None
    try:
        _check_owner(what, path, os.fstat(descriptor))
        content = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    if len(content) > _MAX_BYTES:
        raise ConfigurationError(f"{what} {path} is larger than {_MAX_BYTES} bytes")
    return content.decode()


def _check_owner(what: str, path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"{what} {path} is not a regular file")
    if status.st_uid not in {0, os.geteuid()}:
        raise ConfigurationError(
            f"{what} {path} belongs to another user; it has to belong to root or to the "
            "daemon's user"
        )
    if status.st_mode & 0o022:
        raise ConfigurationError(f"{what} {path} can be written by others; run: chmod go-w {path}")
    if is_open_to_all(path.absolute().parent.stat()):
        raise ConfigurationError(
            f"the directory of {what} {path} is writable by all, and any user could "
            "replace it; move the file, or run: chmod o-w on the directory"
        )
