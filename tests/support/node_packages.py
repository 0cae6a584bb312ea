"""What the tests run from npm: the protocol's conformance suite, the Inspector, the TypeScript clients.

Installed from the lock when a test first asks, and kept in pytest's cache until the lock changes.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

_LOCK = Path(__file__).resolve().parents[1] / "data" / "node"
_INSTALL_SECONDS = 240
_ATTEMPTS = 3


@dataclass(frozen=True)
class NodePackages:
    """``root`` holds ``node_modules``; with them comes a Node that is new enough for all of them."""

    root: Path

    @property
    def node(self) -> Path:
        """The interpreter."""
        return self.root / "node_modules" / ".bin" / "node"

    def path(self, name: str) -> Path:
        """A file of an installed package."""
        return self.root / "node_modules" / name

    def run(
        self, script: Path, *arguments: str, seconds: float, stdin: str | None = None, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """The script's end. Nothing is kept in the home directory of whoever runs the tests."""
        home = self.root / "home"
        home.mkdir(exist_ok=True)
        command: Sequence[str] = [str(self.node), str(script), *arguments]
        # The Inspector's CLI starts what speaks stdio with the Node it finds first.
        path = f"{self.node.parent}:{os.environ.get('PATH', os.defpath)}"
        return subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, "PATH": path, "HOME": str(home), "NO_COLOR": "1", **(environment or {})},
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )


@pytest.fixture(scope="session")
def node_packages(request: pytest.FixtureRequest) -> NodePackages:
    """The packages of ``tests/data/node``. Skips (fails in CI) without npm."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed; the protocol's suites come from there")
    digest = sha256((_LOCK / "package-lock.json").read_bytes()).hexdigest()
    place = request.config.cache.mkdir("node") / digest[:16]
    if not place.is_dir():
        _install(place)
    return NodePackages(place)


def _install(place: Path) -> None:
    """In place only once it is whole; another run of the tests may do the same at the same time."""
    building = Path(tempfile.mkdtemp(prefix="building-", dir=place.parent))
    shutil.copytree(_LOCK, building, dirs_exist_ok=True)
    command = ["npm", "ci", "--no-audit", "--no-fund"]
    for attempt in range(_ATTEMPTS):
        done = subprocess.run(command, cwd=building, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
        # A registry may fail for a moment.
        if done.returncode == 0 or attempt == _ATTEMPTS - 1:
            break
    assert done.returncode == 0, done.stderr[-4000:]
    try:
        building.rename(place)
    except OSError:
        assert place.is_dir()
        shutil.rmtree(building)
