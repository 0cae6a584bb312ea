"""The daemon's identity: a persistent instance id, and a lock that keeps a second daemon away.

The instance id is a file, so a copy of the state directory has it too. The lock is a file of the
kernel's: a copy of the directory has another one.
"""

import fcntl
import os
import threading
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from controller_client.config.errors import AlreadyRunning, ConfigurationError
from controller_client.session_files.daemon_status import LOCK_NAME
from controller_client.session_files.directory import sync_directory
from controller_client.system.files.plain_file import create_plain, open_private, read_plain

# Whoever looks whether a daemon runs has the lock for a moment.
_PAUSES: Final = (0.01, 0.05, 0.1)


def lock_state_dir(state_dir: Path) -> int:
    """Lock the state directory until the process ends; return the descriptor of the lock.

    Raises AlreadyRunning, ConfigurationError.
    """
    try:
        # Closed on exec, so that no holder inherits it and keeps the next daemon out.
        descriptor = open_private(state_dir / LOCK_NAME, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise _unlockable(state_dir, error) from None
    for pause in (*_PAUSES, None):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            if pause is not None:
                threading.Event().wait(pause)
        except OSError as error:
            os.close(descriptor)
            raise _unlockable(state_dir, error) from None
    os.close(descriptor)
    raise AlreadyRunning(str(state_dir))


def _unlockable(state_dir: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(f"cannot lock the state directory {state_dir}: {error.strerror}")


def lock_id(descriptor: int) -> str:
    """Return the name of a lock: the same after a restart on its directory, another on a copy.

    Names of different boots of the host cannot be compared.
    """
    lock = os.fstat(descriptor)
    return f"{lock.st_dev:x}:{lock.st_ino:x}"


def instance_id(state_dir: Path) -> str:
    """Read the id of the daemon of ``state_dir``, or write a new one.

    Raises ConfigurationError if it cannot be read or written.
    """
    path = state_dir / "instance_id"
    try:
        return str(UUID(read_plain(path).decode("ascii").strip()))
    except FileNotFoundError:
        return _new_instance_id(path)
    except OSError as error:
        # The file may hold a good identity, so the operator must not be told to remove it.
        raise ConfigurationError(f"{path} cannot be read now: {error.strerror}") from None
    except ValueError:
        raise ConfigurationError(
            f"{path} does not hold a UUID; remove it to give this host a new identity"
        ) from None


def _new_instance_id(path: Path) -> str:
    new = str(uuid4())
    temporary = path.with_suffix(".new")
    try:
        with os.fdopen(create_plain(temporary), "w", encoding="ascii") as file:
            file.write(new + "\n")
            file.flush()
            # The server binds the credential to it: a crash of the host must not take it away.
            os.fsync(file.fileno())
        temporary.replace(path)
        sync_directory(path.parent)
    except OSError as error:
        raise ConfigurationError(f"cannot write {temporary}: {error.strerror}") from None
    return new
