"""The oldest supported release, out of this repository's history, and stacks of two releases."""

import atexit
import functools
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.databases.cluster import Backends
from tests.support.databases.database import Database, PostgresDatabase
from tests.support.provisioning import Provisioned
from tests.support.stack import PROJECT_ROOT, Stack, server_command
from tests.support.waiting import wait_until

OLDEST = "cd289ce"
"""The oldest commit whose daemons and databases are supported: docs/reference/releases.md."""
_HOST = "host"
_DATABASE = "two_releases"


@functools.cache
def oldest_release() -> Path:
    """A directory with the code of the oldest supported release."""
    archive = subprocess.run(
        ["git", "archive", OLDEST], cwd=PROJECT_ROOT, capture_output=True, check=False
    )
    assert archive.returncode == 0, (
        f"commit {OLDEST}, the oldest supported release, is not in this clone. A shallow clone has "
        "no history: run git fetch --unshallow, or have the checkout of CI fetch all of it "
        f"({archive.stderr.decode(errors='replace').strip()})"
    )
    root = Path(tempfile.mkdtemp(prefix="holdline-oldest-"))
    atexit.register(shutil.rmtree, root, ignore_errors=True)
    root.chmod(0o755)
    subprocess.run(["tar", "-x", "-C", root], input=archive.stdout, check=True)
    return root


class TwoReleases(Stack):
    """A stack that begins with the oldest release, in a database that this one made.

    ``server_release`` and ``daemon_release`` are the directories of the code that is started next.
    The database is embedded, or a new one of the ``backends``.
    """

    def __init__(self, *, backends: Backends | None = None, **options: Any) -> None:
        self.server_release = self.daemon_release = oldest_release()
        self._backends = backends
        super().__init__(**options)

    def _provision(self, max_interactive_sessions: int) -> None:
        self.database = Database(self.data_dir / "db.sqlite3")
        if self._backends is not None:
            self._backends.postgres.execute(f"CREATE DATABASE {_DATABASE}")
            url = self._backends.postgres.url(_DATABASE)
            self.database = PostgresDatabase(url)
            of_backends = {"DATABASE_URL": url, "REDIS_URL": self._backends.redis.url}
            self._server_environment = {**self._server_environment, **of_backends}
        self.manage("migrate", "--no-input")
        made = json.loads(
            self.manage(
                "bootstrap", "--controller", _HOST, "--url", f"http://127.0.0.1:{self.port}"
            )
        )
        token, credential = (
            Path(made[name]).read_text().strip() for name in ("token_file", "credential_file")
        )
        self.database.execute(
            "UPDATE projects_project SET max_interactive_sessions = ?", max_interactive_sessions
        )
        self.provisioned = Provisioned(_HOST, token, "", credential, "", "", "")

    def manage(self, *arguments: str, release: Path | None = None) -> str:
        """Run a command of a release, which must succeed: by default the server's present one."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=release or self.server_release,
            env=self.server_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _launch(
        self, port: int, log_name: str, environment: dict[str, str]
    ) -> subprocess.Popen[bytes]:
        with (self.root / log_name).open("ab") as log:
            return subprocess.Popen(
                self._server_command(port),
                cwd=self.server_release,
                env=self.server_environment(**environment),
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def _server_command(self, port: int) -> list[str]:
        if (self.server_release / "config/server.py").exists():
            return server_command(self.SERVER_KIND, port)
        # As the image of that release started it.
        given = ["-b", "127.0.0.1", "-p", str(port), "--websocket_timeout", "-1"]
        given += ["--ping-interval", "10", "--ping-timeout", "10", "-v", "0"]
        return [str(Path(sys.executable).parent / "daphne"), *given, self.APPLICATION]

    def daemon_command(self, **options: Any) -> tuple[list[str], dict[str, str]]:
        command, environment = super().daemon_command(**options)
        return command, {**environment, "PYTHONPATH": str(self.daemon_release)}

    def migrate(self) -> None:
        """Give the database the tables of this release. The server goes on meanwhile."""
        self.manage("migrate", "--no-input", release=PROJECT_ROOT)

    def upgrade_server(self) -> None:
        """Replace the server by this release, and return when the daemon is back.

        The database has the tables of this release then.
        """
        self.server_release = PROJECT_ROOT
        self.migrate()
        self.restart_server()

    def go_back(self) -> None:
        """Replace the server by the oldest release, which finds what this one has written."""
        self.server_release = oldest_release()
        self.restart_server()

    def restart_server(self) -> None:
        """Kill the server, start ``server_release``, and return when the daemon is back."""
        epoch = self.database.controller_epoch(_HOST)
        self.kill_server()
        self.start_server()
        wait_until(
            lambda: self.database.controller_epoch(_HOST) > epoch, 120, "the daemon to be back"
        )

    def upgrade_daemon(self) -> None:
        """Replace the daemon by this release. Holders of the old one go on."""
        self.kill_daemon()
        self.daemon_release = PROJECT_ROOT
        self.start_daemon()
