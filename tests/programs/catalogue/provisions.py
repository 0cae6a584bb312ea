"""Installation of what the whole catalogue needs and ``.ci/run`` does not bring."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.support.accounts import requires_root
from tests.support.hosts.apt_repository import INSTALLED_PACKAGES
from tests.support.running.exclusion import alone_with

PLACE: Final = Path("/var/tmp/holdline-programs")
PYTHON: Final = PLACE / "python" / "bin"
MODULES: Final = PLACE / "node" / "node_modules"
SCRIPTS: Final = MODULES / ".bin"
GO: Final = PLACE / "go"
_SOURCES: Final = Path(__file__).parent / "screens" / "go"
_LISTS: Final = Path(__file__).with_name("packages")


def _listed(kind: str) -> list[str]:
    return (_LISTS / f"{kind}.txt").read_text().split()


def provide() -> None:
    """Install the packages of the three lists, unless that was done before."""
    requires_root()
    with alone_with(INSTALLED_PACKAGES):
        _provide_debian()
    PLACE.mkdir(exist_ok=True)
    with alone_with(PLACE):
        _once(PYTHON.parent, _provide_python)
        _once(MODULES.parent, _provide_node)
        _once(GO, _provide_go)


def _once(place: Path, provide_in: Callable[[], None]) -> None:
    """Install into ``place``, again from the start if an installation was broken off."""
    is_complete = place / "complete"
    if not is_complete.exists():
        shutil.rmtree(place, ignore_errors=True)
        provide_in()
        is_complete.touch()


def _provide_python() -> None:
    _run("/usr/bin/python3", "-m", "venv", str(PYTHON.parent))
    _run(str(PYTHON / "pip"), "install", "--quiet", *_listed("pypi"))


def _provide_node() -> None:
    MODULES.parent.mkdir()
    _run("npm", "install", "--ignore-scripts", "--no-audit", *_listed("npm"))
    # This one links its program to the package for the platform, in a script.
    _run("npm", "rebuild", "opencode-ai")


def _provide_go() -> None:
    GO.mkdir()
    # The libraries are packages of Debian, in a path of their own.
    libraries = ("env", "GO111MODULE=off", "GOPATH=/usr/share/gocode")
    for source in _SOURCES.iterdir():
        _run(*libraries, "go", "build", "-o", str(GO / source.stem), str(source))


def _provide_debian() -> None:
    query = ["dpkg-query", "--show", "--showformat", "${db:Status-Status} ${Package}\n"]
    shown = subprocess.run(query, check=True, capture_output=True, text=True).stdout
    missing = set(_listed("debian")) - {
        line.split()[1] for line in shown.splitlines() if line.startswith("installed ")
    }
    if missing:
        options = ("--yes", "--quiet", "--quiet", "--no-install-recommends", "--no-remove")
        _run("apt-get", "update", "--quiet", "--quiet")
        _run("apt-get", "install", *options, *sorted(missing))


def _run(*command: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    directory = MODULES.parent if command[0] == "npm" else Path("/")
    subprocess.run(command, check=True, env=environment, cwd=directory)
