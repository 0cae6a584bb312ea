"""Everything that can be known to be wrong before anything is installed or started."""

import errno
import importlib
import os
import socket
import sys
import tempfile
from pathlib import Path

from quickstart.errors import UnusableDirectory, UnusablePort, VenvModuleMissing
from quickstart.options import ROOT, Options


def check(options: Options) -> None:
    """Raises the QuickstartError that says what stands in the way."""
    check_port_is_free(options.port)
    check_directory_is_writable(options.data_dir, "Choose another place with --data-dir DIR.")
    if not (ROOT / ".venv").exists():
        check_venv_module()
        check_directory_is_writable(ROOT, "The checkout must be writable: .venv is made in it.")


def check_port_is_free(port: int) -> None:
    """Bind it for a moment, as the server will."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                hint = f"Stop what listens there, or choose another port: PORT={_another(port)} bin/quickstart"
                raise UnusablePort(port, "on 127.0.0.1 is taken", hint) from None
            hint = f"Choose another port: PORT={_another(port)} bin/quickstart"
            raise UnusablePort(port, f"cannot be used: {error.strerror}", hint) from None


def check_directory_is_writable(path: Path, hint: str) -> None:
    """Make it (0700) where it is missing, and write a file into it: permission bits do not tell of read-only mounts."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise UnusableDirectory(path, error.strerror or str(error), hint) from None


def check_venv_module() -> None:
    """Debian packs ensurepip apart from Python, so ``venv`` alone is not enough."""
    for module in ("venv", "ensurepip"):
        try:
            importlib.import_module(module)
        except ImportError:
            raise VenvModuleMissing(module, f"{sys.version_info.major}.{sys.version_info.minor}") from None


def _another(port: int) -> int:
    return port + 1 if port < 65000 else 8000


def owner_is_root() -> bool:
    """The local controller must be told explicitly that it may run as root."""
    return os.geteuid() == 0
