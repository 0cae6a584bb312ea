"""Checks before anything is installed or started."""

import errno
import fcntl
import importlib
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Final, TextIO

from quickstart import previous
from quickstart.errors import (
    AlreadyRunning,
    OtherDatabase,
    OtherServer,
    UnusableDirectory,
    UnusableLock,
    UnusablePort,
    VenvModuleMissing,
)
from quickstart.options import ROOT, Options

_PORTS_TRIED: Final = 20
_LOCK: Final = "quickstart.lock"


def check(options: Options) -> None:
    """Raise the QuickstartError that names the first obstacle, if there is one."""
    if os.environ.get("DATABASE_URL"):
        raise OtherDatabase
    check_directory_is_writable(options.data_dir, "Choose another place with --data-dir DIR.")
    is_ours = (options.data_dir / _LOCK).exists()
    has_database = (options.data_dir / "db.sqlite3").exists()
    if options.is_of_environment and has_database and not is_ours:
        raise OtherServer(options.data_dir)
    claim(options.data_dir).close()
    if options.is_port_chosen and not previous.running(options.data_dir):
        check_port_is_free(options.port)
    if not (ROOT / ".venv").exists():
        check_venv_module()
        check_directory_is_writable(ROOT, "The checkout must be writable: .venv is made in it.")


def claim(data_dir: Path) -> TextIO:
    """Lock the data directory until the returned file is closed.

    Raises AlreadyRunning if another quickstart has it, UnusableLock.
    """
    file = (data_dir / _LOCK).open("a+")
    try:
        lock_alone(file, waits=False)
    except BaseException as error:
        file.close()
        if isinstance(error, BlockingIOError):
            raise AlreadyRunning(data_dir) from None
        raise
    return file


def lock_alone(file: TextIO, *, waits: bool) -> None:
    """Lock an open file against all others until it is closed.

    Raises BlockingIOError if another has it and nobody waits, UnusableLock.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX if waits else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        raise UnusableLock(file.name, error) from None


def usable_port(options: Options) -> int:
    """The chosen port, or without a choice the first free port from the default on.

    Raises UnusablePort.
    """
    if options.is_port_chosen:
        check_port_is_free(options.port)
        return options.port
    for port in range(options.port, options.port + _PORTS_TRIED):
        if is_port_free(port):
            return port
    hint = "Choose another port: PORT=9000 bin/quickstart"
    raise UnusablePort(
        f"{options.port} to {options.port + _PORTS_TRIED - 1}", "on 127.0.0.1 are taken", hint
    )


def is_port_free(port: int) -> bool:
    """True if a server could listen on ``port`` now."""
    try:
        check_port_is_free(port)
    except UnusablePort:
        return False
    return True


def check_port_is_free(port: int) -> None:
    """Raise UnusablePort unless ``port`` can be bound, as the server will bind it."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = (
                    f"Stop what listens there, or choose another port: PORT={_another(port)} "
                    "bin/quickstart"
                )
                raise UnusablePort(port, "on 127.0.0.1 is taken", hint) from None
            hint = f"Choose another port: PORT={_another(port)} bin/quickstart"
            raise UnusablePort(port, f"cannot be used: {error.strerror}", hint) from None


def check_directory_is_writable(path: Path, hint: str) -> None:
    """Raise UnusableDirectory unless a file can be written there; makes the directory (0700).

    A file is written because permission bits do not show a read-only mount.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise UnusableDirectory(path, error.strerror or str(error), hint) from None


def check_venv_module() -> None:
    """Raise VenvModuleMissing unless this Python can make ``.venv``.

    Debian ships ensurepip in a package of its own, so a Python may have venv without it.
    """
    for module in ("venv", "ensurepip"):
        try:
            importlib.import_module(module)
        except ImportError:
            raise VenvModuleMissing(
                module, f"{sys.version_info.major}.{sys.version_info.minor}"
            ) from None


def _another(port: int) -> int:
    return port + 1 if port < 65000 else 8000
