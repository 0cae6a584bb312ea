"""The images start, without a container engine.

The files that each target copies are put into a directory, where the compose file's commands run.
"""

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import pytest
from django.templatetags.static import static

from controller_client.session_files.directory import all_sessions
from tests.support.installs.images import PROJECT_ROOT, assemble, filled, images, services
from tests.support.mcp.light_client import LightCaller
from tests.support.ports import free_port
from tests.support.stack import accepts
from tests.support.waiting import wait_until

_START_SECONDS = 90.0


def make_secrets(file: Path) -> None:
    """Make the file of secrets, unless it is there."""
    subprocess.run(["deploy/make-secrets", str(file)], cwd=PROJECT_ROOT, check=True)


class Composed:
    """The server and the controller of the compose file, run on this machine.

    The volumes are directories in ``root``.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.port = root, free_port()
        self._images = images()
        for name in ("server", "controller"):
            assemble(self._images[name], root / name)
        for volume in ("data", "state", "tls"):
            # As the Dockerfile makes them.
            (root / volume).mkdir(mode=0o700)

    def here(self, command: list[str]) -> list[str]:
        """A command of a container, with its volumes and its port where they are here.

        What is relative stays so.
        """
        words = [
            re.sub(r"(?<![\w.])/(data|state|tls)\b", rf"{self.root}/\1", word) for word in command
        ]
        return [
            word.replace("8000", str(self.port)).replace("0.0.0.0", "127.0.0.1") for word in words
        ]

    def environment(self, service: str) -> dict[str, str]:
        """The environment of a container, with a database of its own."""
        secrets_file = self.root / "env"
        make_secrets(secrets_file)
        given = dict(line.split("=", 1) for line in secrets_file.read_text().splitlines())
        entry = services()[service]
        composed = {
            name: filled(str(value), given) for name, value in entry.get("environment", {}).items()
        }
        image = self._images[entry["build"]["target"]].environment
        own = {
            name: value
            for name, value in {**image, **composed}.items()
            if name not in {"DATABASE_URL", "REDIS_URL", "PATH"}
        }
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return {
            **own,
            "HOLDLINE_DATA_DIR": str(self.root / "data"),
            "PATH": path,
            "HOME": str(self.root),
        }

    def run(self, service: str, *arguments: str, **environment: str) -> str:
        """Run a service, or another command in its place, to its end; returns its output."""
        entry = services()[service]
        command = self.here([filled(str(word), {}) for word in arguments or entry["command"]])
        place = self.root / entry["build"]["target"]
        variables = {**self.environment(service), **environment}
        done = subprocess.run(
            command, cwd=place, env=variables, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    @contextmanager
    def running(
        self, target: str, command: list[str], environment: Mapping[str, str]
    ) -> Iterator[Path]:
        """A service that stays up while inside; yields its log."""
        log = self.root / f"{target}.log"
        with (
            log.open("wb") as file,
            _process(self.here(command), self.root / target, environment, file),
        ):
            yield log

    def server(self) -> list[str]:
        """The command of the server's image, which the compose file does not replace."""
        assert "command" not in services()["server-1"]
        return self._images["server"].command

    def health(self) -> list[str]:
        """The health check that the compose file declares for the server."""
        return self._images["server"].health

    def controller(self) -> list[str]:
        """The command of the controller, changed to reach a server without TLS on loopback."""
        given = [str(word) for word in services()["controller"]["command"]]
        address = given[given.index("--server") + 1]
        given[given.index("--server") + 1] = (
            f"ws://127.0.0.1:{self.port}{address.partition(':8443')[2]}"
        )
        own = ["--allow-root"] if os.geteuid() == 0 else []
        return [*self._images["controller"].entrypoint, *given, *own]


@contextmanager
def _process(
    command: list[str], place: Path, environment: Mapping[str, str], log: IO[bytes]
) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        command, cwd=place, env=dict(environment), stdout=log, stderr=log, stdin=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(20)
        process.kill()
        process.wait()


@pytest.fixture
def composed(tmp_path: Path) -> Composed:
    """Both images, assembled, with no service started."""
    return Composed(tmp_path)


def test_the_images_start_and_a_session_is_held_between_them(composed: Composed) -> None:
    composed.run("migrate")
    assert "no issues" in composed.run("server-1", "python", "manage.py", "check", "--deploy")
    made = json.loads((composed.root / "data" / "bootstrap.json").read_text())
    token = Path(made["token_file"]).read_text().strip()
    environment = composed.environment("server-1")
    with composed.running("server", composed.server(), environment) as log:
        wait_until(
            lambda: accepts(composed.port), _START_SECONDS, f"the server to answer (see {log})"
        )
        subprocess.run(
            composed.here(composed.health()), check=True, env=environment, cwd=composed.root
        )
        assert _status(composed.port, "/readyz") == 200
        # Out of the installed packages and our own ones: nothing was collected before.
        for file in (
            "admin/css/base.css",
            "projects/transcript.css",
            "console/console.css",
        ):
            assert _status(composed.port, static(file)) == 200
        with composed.running(
            "controller",
            composed.controller(),
            {**composed.environment("controller"), "TERM": "dumb"},
        ) as said:
            wait_until(
                lambda: "connected under epoch" in said.read_text(),
                _START_SECONDS,
                "the controller to connect",
            )
            asyncio.run(_hold_a_session(LightCaller("localhost", composed.port, token)))
            # A holder waits until the server has its end. Without a server it would wait for ever.
            wait_until(
                lambda: not all_sessions(composed.root / "state"),
                _START_SECONDS,
                "the holder to go",
            )


async def _hold_a_session(caller: LightCaller) -> None:
    started = await caller.call("start_interactive_command", command="cat")
    answer = await caller.call(
        "send_command_input", session_id=started["session_id"], input_text="here\n"
    )
    assert answer["output"].split() == ["here", "here"]
    await caller.call("send_command_input", session_id=started["session_id"], terminate=True)
    caller.close()


def _status(port: int, path: str) -> int:
    request = urllib.request.Request(
        f"http://localhost:{port}{path}", headers={"X-Forwarded-Proto": "https"}
    )
    with urllib.request.urlopen(request, timeout=120) as answer:
        return int(answer.status)


def test_the_certificate_of_the_compose_file_is_made_by_its_image(composed: Composed) -> None:
    composed.run("certificate", PROXY_USER=str(os.geteuid()))
    shown = subprocess.run(
        [
            "openssl",
            "verify",
            "-CAfile",
            composed.root / "tls" / "ca.pem",
            composed.root / "tls" / "holdline.pem",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "OK" in shown.stdout


def test_every_service_is_built_of_a_target_that_exists() -> None:
    targets = {entry["build"]["target"] for entry in services().values() if "build" in entry}
    assert targets == {"server", "controller"}
    assert targets <= images().keys()


def test_the_servers_know_callers_apart_behind_the_proxy() -> None:
    proxy = (PROJECT_ROOT / "deploy" / "haproxy.cfg").read_text()
    assert "http-request del-header X-Forwarded-For" in proxy
    assert re.search(r"^ +option forwardfor$", proxy, re.MULTILINE)
    for name in ("server-1", "server-2"):
        assert services()[name]["environment"]["HOLDLINE_PROXY_COUNT"] == "1"


def test_the_proxy_refuses_what_the_servers_refuse() -> None:
    from config.settings import base

    (bound,) = re.findall(
        r"req\.body_size gt (\d+)", (PROJECT_ROOT / "deploy" / "haproxy.cfg").read_text()
    )
    assert int(bound) == base.DATA_UPLOAD_MAX_MEMORY_SIZE


def test_secrets_are_made_once_and_for_their_owner_alone(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    before = os.umask(0o022)
    try:
        make_secrets(file)
    finally:
        os.umask(before)
    made = file.read_text()
    assert file.stat().st_mode & 0o777 == 0o600
    assert len([line for line in made.splitlines() if line.partition("=")[2]]) == 5
    make_secrets(file)
    assert file.read_text() == made
    assert [path.name for path in tmp_path.iterdir()] == [".env"]
