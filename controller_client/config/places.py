"""The state directory and the credential file: where they are, and who may use them.

Every refusal is a ConfigurationError whose text says what to change.
"""

import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import Final

from controller_client.config.errors import ConfigurationError

CREDENTIAL: Final = re.compile(r"ctl_[A-Za-z0-9]+_[A-Za-z0-9_-]+")
SERVICE_STATE_DIR: Final = Path("/var/lib/holdline-controller")
_MAX_CREDENTIAL_FILE_BYTES: Final = 4096


def default_credential_file(state_dir: Path) -> Path:
    """Name the file where ``enroll`` writes the credential and ``run`` looks for it."""
    return state_dir / "credential"


def earlier_credential_file(path: Path) -> Path:
    """The file with the credential that ``rotate`` has replaced by the one in ``path``."""
    return path.with_name(f"{path.name}.earlier")


def read_credential(path: Path) -> str:
    """Read the one line of ``path``, a file that only its owner may read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        raise ConfigurationError(
            f"there is no credential file {path}; enrol this host first: holdline-controller enroll"
        ) from None
    except OSError as error:
        raise ConfigurationError(
            f"cannot open the credential file {path}: {error.strerror}"
        ) from None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigurationError(f"the credential file {path} is not a regular file")
        _check_private(f"the credential file {path}", path, status, 0o600)
        content = os.read(descriptor, _MAX_CREDENTIAL_FILE_BYTES + 1)
    finally:
        os.close(descriptor)
    credential = content.decode("ascii", "replace").strip()
    # Of a longer file only a part was read, which could be what the whole is not.
    if len(content) > _MAX_CREDENTIAL_FILE_BYTES or not CREDENTIAL.fullmatch(credential):
        raise ConfigurationError(
            f"the credential file {path} does not hold one line ctl_<keyid>_<secret>; enrol this "
            "host again: holdline-controller enroll --replace"
        )
    return credential


def prepare_state_dir(path: Path | None) -> Path:
    """Create the state directory if it is missing; return it as an absolute path.

    None stands for the default. The directory has to belong to this user, with mode 0700.
    """
    directory = (default_state_dir() if path is None else path).absolute()
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = os.lstat(directory)
    except OSError as error:
        raise ConfigurationError(
            f"cannot use the state directory {directory}: {error.strerror}; name another with "
            "--state-dir"
        ) from None
    if not stat.S_ISDIR(status.st_mode):
        raise ConfigurationError(
            f"the state directory {directory} is a link or a file; name the directory itself with "
            "--state-dir"
        )
    _check_private(f"the state directory {directory}", directory, status, 0o700)
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ConfigurationError(
            f"the state directory {directory} is not writable; run: chmod 700 {directory}"
        )
    return directory


def default_state_dir() -> Path:
    """Return the service's state directory if it belongs to this user, else one of the user's own.

    That is ``$XDG_STATE_HOME/holdline-controller``, else the same under ``~/.local/state``.
    """
    with suppress(OSError):
        if SERVICE_STATE_DIR.stat().st_uid == os.geteuid():
            return SERVICE_STATE_DIR
    return user_base("XDG_STATE_HOME", ".local/state") / "holdline-controller"


def user_base(variable: str, usual: str) -> Path:
    """Return the directory that ``variable`` names, or else ``usual`` of the user's home.

    A relative one counts as none, as its standard says: it would be another place for each caller.
    """
    named = Path(os.environ.get(variable, ""))
    if named.is_absolute():
        return named
    try:
        return Path.home() / usual
    except RuntimeError:
        # A number of a container, to which nobody has given a name or a home.
        return Path("/nonexistent") / usual


def _check_private(what: str, path: Path, status: os.stat_result, mode: int) -> None:
    """Raise ConfigurationError unless ``path`` belongs to this user and nobody else may use it."""
    if status.st_uid != os.geteuid():
        raise ConfigurationError(
            f"{what} belongs to another user; run as that user, or name one of your own"
        )
    if status.st_mode & 0o077:
        raise ConfigurationError(f"{what} is open to others; run: chmod {mode:o} {path}")
