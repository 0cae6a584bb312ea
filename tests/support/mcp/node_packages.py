"""The packages that tests run from npm: the conformance suite, the Inspector, TypeScript clients.

They are installed from the lock when a test first needs them, and kept in pytest's cache until the
lock changes.
"""

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import pytest

from tests.support.running.exclusion import alone_with

_LOCK = Path(__file__).resolve().parents[2] / "data" / "node"
_INSTALL_SECONDS = 240
_ATTEMPTS = 3


@dataclass(frozen=True)
class NodePackages:
    """The installed packages, with a Node that is new enough for all of them.

    ``root`` holds ``node_modules``.
    """

    root: Path

    @property
    def node(self) -> Path:
        return self.root / "node_modules" / ".bin" / "node"

    def path(self, name: str) -> Path:
        """A file of an installed package."""
        return self.root / "node_modules" / name

    def run(
        self, *arguments: str, seconds: float, stdin: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run Node with these arguments to its end.

        A program that Node reads on ``stdin`` finds the packages, wherever its file is.
        """
        environment = {**os.environ, "NO_COLOR": "1"}
        with (stdin or Path(os.devnull)).open() as source:
            return subprocess.run(
                [str(self.node), *arguments],
                cwd=self.root,
                env=environment,
                stdin=source,
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
    with alone_with(place.parent):
        if not place.is_dir():
            _install(place)
    return NodePackages(place)


def _install(place: Path) -> None:
    """Install into ``place``, which appears only once it is complete."""
    building = Path(tempfile.mkdtemp(prefix="building-", dir=place.parent))
    shutil.copytree(_LOCK, building, dirs_exist_ok=True)
    command = ["npm", "ci", "--no-audit", "--no-fund"]
    for attempt in range(_ATTEMPTS):
        done = subprocess.run(
            command,
            cwd=building,
            check=False,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
        )
        # A registry may fail for a moment.
        if done.returncode == 0 or attempt == _ATTEMPTS - 1:
            break
    assert done.returncode == 0, done.stderr[-4000:]
    building.rename(place)
