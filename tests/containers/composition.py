"""The compose file, started from a copy of the project by the commands of the guide."""

import json
import os
import shutil
import signal
import ssl
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from tests.containers.engine import compose
from tests.support.installs.images import PROJECT_ROOT

PROJECT: Final = "holdline-trial"
ADDRESS: Final = "https://localhost:8443"
_BOOTSTRAP: Final = ("run", "--rm", "-T", "migrate", "cat")


class Composition:
    """The containers of the compose file; ``root`` is the copy of the project."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def compose(self, *arguments: str) -> str:
        """Run the compose command in the copy, and return what it writes to its output."""
        command = compose()
        assert command is not None
        return self._run(*command, "--project-name", PROJECT, *arguments)

    def up(self) -> None:
        """Build what is not built, and start what does not run.

        Raises AssertionError with the logs of the containers if one of them failed.
        """
        try:
            self.compose("up", "--build", "--detach")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.logs()[-8000:]}") from None

    def down(self, *options: str) -> None:
        """Remove all containers; with ``--volumes`` their data as well."""
        self.compose("down", *options)

    def bootstrapped(self) -> dict[str, Any]:
        """Return what the first start made, as the guide says how to read it."""
        made: dict[str, Any] = json.loads(self.compose(*_BOOTSTRAP, "/data/bootstrap.json"))
        return made

    def token(self) -> str:
        """Return the token of the project that the first start made."""
        return self.compose(*_BOOTSTRAP, self.bootstrapped()["token_file"]).strip()

    def certificate(self) -> Path:
        """Return a copy of what clients have to trust."""
        self._run("docker", "cp", f"{self.container('proxy')}:/tls/ca.pem", str(self.root))
        return self.root / "ca.pem"

    def container(self, service: str) -> str:
        """Return the id of the one container of a service."""
        (found,) = self.compose("ps", "--quiet", service).split()
        return found

    def inspected(self, service: str) -> dict[str, Any]:
        """Return what the engine says of the container of a service."""
        (found,) = json.loads(self._run("docker", "inspect", self.container(service)))
        return dict(found)

    def kill(self, service: str) -> None:
        """Kill the first process of a container, as a lack of memory would.

        A container that the engine is told to kill is not started again.
        """
        os.kill(self.inspected(service)["State"]["Pid"], signal.SIGKILL)

    def restarts(self, service: str) -> int:
        """Return how often the engine started the container again by itself."""
        return int(self.inspected(service)["RestartCount"])

    def health(self, service: str) -> str:
        """Return ``healthy``, ``starting`` or ``unhealthy``."""
        return str(self.inspected(service)["State"]["Health"]["Status"])

    def is_ready(self, certificate: Path) -> bool:
        """Return whether the proxy has a server that is ready."""
        trust = ssl.create_default_context(cafile=str(certificate))
        try:
            with urllib.request.urlopen(f"{ADDRESS}/readyz", context=trust, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def logs(self) -> str:
        """Return what all containers have written."""
        return self.compose("logs", "--no-color")

    def left(self) -> list[str]:
        """Return the containers, volumes and networks that are still there."""
        ours = f"label=com.docker.compose.project={PROJECT}"
        lists = (("ps", "--all"), ("volume", "ls"), ("network", "ls"))
        return [
            name
            for words in lists
            for name in self._run("docker", *words, "--quiet", "--filter", ours).split()
        ]

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, cwd=self.root, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        return done.stdout


@contextmanager
def composition(root: Path) -> Iterator[Composition]:
    """Start everything from nothing, and remove everything after the block."""
    _copy_project(root)
    subprocess.run(["deploy/make-secrets", ".env"], cwd=root, check=True)
    composed = Composition(root)
    try:
        composed.up()
        yield composed
    finally:
        composed.down("--volumes", "--remove-orphans")


def _copy_project(root: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=PROJECT_ROOT, capture_output=True, text=True, check=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT_ROOT / name, root / name)
