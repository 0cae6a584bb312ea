"""PostgreSQL and Redis of a run, as processes of its own, reached through links of its own."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from chaos.plant import processes
from chaos.plant.link import Link
from chaos.plant.ports import Ports, accepts
from chaos.plant.processes import Command, Process

_OWNER: Final = "postgres"
_DATABASE: Final = "holdline"
_LOCAL: Final = "127.0.0.1"


def _binary(name: str) -> str:
    """A program of the newest PostgreSQL that is installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin")
    return str(max(found, key=lambda path: float(path.parent.name)) / name)


class Backends:
    """PostgreSQL and Redis; ``variables`` tell servers where they are."""

    def __init__(self, directory: Path, ports: Ports) -> None:
        self._directory = directory / "backends"
        self._postgresql_port, self._redis_port = ports.next(), ports.next()
        self.links = {
            "database": Link(ports.next(), [self._postgresql_port]),
            "redis": Link(ports.next(), [self._redis_port]),
        }
        self.processes = {
            "postgresql": Process(
                "postgresql", directory / "postgresql.log", self._postgresql_command
            ),
            "redis": Process("redis", directory / "redis.log", self._redis_command),
        }

    @property
    def variables(self) -> dict[str, str]:
        """The variables of a server that uses both."""
        database = f"{_OWNER}:unused@{_LOCAL}:{self.links['database'].port}/{_DATABASE}"
        return {
            "DATABASE_URL": f"postgres://{database}",
            "REDIS_URL": f"redis://{_LOCAL}:{self.links['redis'].port}/0",
        }

    def accepts(self, name: str) -> bool:
        """True if PostgreSQL or Redis answers at its port."""
        if name == "redis":
            return accepts(self._redis_port)
        asked = [_binary("pg_isready"), "-q", "-h", _LOCAL, "-p", str(self._postgresql_port)]
        return subprocess.run(asked, check=False).returncode == 0

    def make(self) -> None:
        """Make an empty cluster of PostgreSQL."""
        self._directory.mkdir(mode=0o755)
        if os.geteuid() == 0:
            shutil.chown(self._directory, _OWNER, _OWNER)
        command = [_binary("initdb"), "-D", str(self._directory / "postgresql"), "-U", _OWNER]
        subprocess.run(
            [*command, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"],
            check=True,
            capture_output=True,
            cwd="/",
            user=_user(),
            group=_user(),
            extra_groups=None if _user() is None else [],
        )

    async def make_database(self) -> None:
        """Make the database of the servers, once PostgreSQL answers."""
        where = ["-h", _LOCAL, "-p", str(self._postgresql_port), "-U", _OWNER]
        command = [_binary("createdb"), *where, _DATABASE]
        await processes.run(Command(command, dict(os.environ), Path("/")))

    def _postgresql_command(self) -> Command:
        options = ["unix_socket_directories=", "max_connections=100", "timezone=UTC"]
        # Processes die here and the machine does not, so what the kernel has is not lost. After a
        # kill PostgreSQL would sync every file of the cluster first, which takes a busy disk 10 s.
        options.append("fsync=off")
        arguments = [_binary("postgres"), "-D", str(self._directory / "postgresql")]
        arguments += ["-h", _LOCAL, "-p", str(self._postgresql_port)]
        arguments += [word for option in options for word in ("-c", option)]
        return Command(arguments, dict(os.environ), Path("/"), _user())

    def _redis_command(self) -> Command:
        arguments = ["redis-server", "--port", str(self._redis_port), "--bind", _LOCAL]
        arguments += ["--save", "", "--appendonly", "no", "--dir", str(self._directory)]
        return Command(arguments, dict(os.environ), Path("/"))


def _user() -> str | None:
    """The user to run as: PostgreSQL refuses to run as root."""
    return _OWNER if os.geteuid() == 0 else None
