"""Servers for the programs of the catalogue that are clients, and the places where they are."""

import shutil
import socketserver
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.databases.postgres import Postgres
from tests.support.databases.redis_server import Redis
from tests.support.ports import free_port
from tests.support.waiting import wait_until

_SLOW_SECONDS = 1.2
Places = dict[str, str]


@contextmanager
def redis() -> Iterator[Places]:
    """Run a Redis, and yield its port."""
    server = Redis()
    try:
        yield {"port": str(server.start().port)}
    finally:
        server.remove()


@contextmanager
def postgres() -> Iterator[Places]:
    """Run a PostgreSQL that trusts everybody, and yield its port."""
    server = Postgres()
    try:
        yield {"postgres_port": str(server.start().port)}
    finally:
        server.remove()


@contextmanager
def mariadb() -> Iterator[Places]:
    """Run a MariaDB that is reached by a socket alone, and yield the path of the socket."""
    root = Path(tempfile.mkdtemp(prefix="holdline-mariadb-"))
    root.chmod(0o755)
    data, socket = root / "data", root / "socket"
    options = [f"--datadir={data}", "--user=root"]
    install = ["mariadb-install-db", "--auth-root-authentication-method=normal", *options]
    subprocess.run(install, check=True, capture_output=True)
    with (root / "log").open("wb") as log:
        server = subprocess.Popen(
            ["/usr/sbin/mariadbd", *options, f"--socket={socket}", "--skip-networking"],
            stdout=log,
            stderr=log,
        )
    try:
        wait_until(socket.exists, 60, "MariaDB to answer")
        yield {"socket": str(socket)}
    finally:
        server.terminate()
        server.wait(60)
        shutil.rmtree(root)


class _Slow(socketserver.StreamRequestHandler):
    """The answer to any request comes after a while, and then the connection is closed."""

    def handle(self) -> None:
        threading.Event().wait(_SLOW_SECONDS)
        self.wfile.write(b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nok\n")


@contextmanager
def slow() -> Iterator[Places]:
    """Serve whoever connects, slowly, and yield the port."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", free_port()), _Slow) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield {"slow": str(server.server_address[1])}
        finally:
            server.shutdown()
            thread.join()


SERVERS: dict[str, Callable[[], object]] = {
    "redis": redis,
    "postgres": postgres,
    "mariadb": mariadb,
    "slow": slow,
}
