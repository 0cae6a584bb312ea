"""HAProxy, set up by ``deploy/haproxy.cfg``, before servers that it knows by their names alone.

Containers have names. A container that starts again may have another address.
"""

import os
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import httpx2

from tests.support.accounts import requires, requires_root
from tests.support.installs.name_server import NameServer, name_server
from tests.support.ports import free_port
from tests.support.stack import PROJECT_ROOT
from tests.support.waiting import wait_until

_SECONDS = 60.0
_WITH_OWN_NAMES = 'mount --bind "$0" /etc/resolv.conf && exec haproxy -db -f "$1"'


class _Told(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = str(self.server.server_address[0]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def _server(address: str, port: int) -> Iterator[None]:
    """A server that tells its address."""
    with ThreadingHTTPServer((address, port), _Told) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def _haproxy(directory: Path, names: NameServer, server_port: int) -> Iterator[httpx2.Client]:
    names.write_configuration(directory / "resolv.conf")
    maker = PROJECT_ROOT / "deploy/make-certificate"
    subprocess.run([maker, directory, "localhost"], check=True)
    port = free_port()
    variables = {
        "PATH": f"{os.environ['PATH']}:/usr/sbin",
        "HOLDLINE_BIND": f"127.0.0.1:{port}",
        "HOLDLINE_CERTIFICATE": str(directory / "holdline.pem"),
        "HOLDLINE_SERVER_1": f"server-1:{server_port}",
        "HOLDLINE_SERVER_2": f"server-2:{server_port}",
    }
    files = [str(directory / "resolv.conf"), str(PROJECT_ROOT / "deploy/haproxy.cfg")]
    command = ["unshare", "--mount", "sh", "-c", _WITH_OWN_NAMES, *files]
    trust = ssl.create_default_context(cafile=str(directory / "ca.pem"))
    with (directory / "log").open("wb") as log:
        proxy = subprocess.Popen(command, env=variables, stdout=log, stderr=log)
    try:
        origin = f"https://localhost:{port}"
        with httpx2.Client(base_url=origin, verify=trust, timeout=_SECONDS) as client:
            yield client
    finally:
        proxy.terminate()
        proxy.wait(_SECONDS)


def _is_served_by(client: httpx2.Client, address: str) -> bool:
    with suppress(httpx2.TransportError):
        return client.get("/readyz").text == address
    return False


def test_a_server_that_starts_again_elsewhere_is_found(tmp_path: Path) -> None:
    requires_root()
    requires("haproxy", "openssl", "unshare")
    port = free_port()
    with name_server() as names:
        # The other server is not there at all when the proxy starts.
        names.names = {"server-1": "127.0.0.71"}
        with _haproxy(tmp_path, names, port) as client:
            with _server("127.0.0.71", port):
                wait_until(lambda: _is_served_by(client, "127.0.0.71"), _SECONDS, "the first")
            names.names = {"server-1": "127.0.0.72"}
            with _server("127.0.0.72", port):
                wait_until(lambda: _is_served_by(client, "127.0.0.72"), _SECONDS, "the second")
            names.names = {"server-2": "127.0.0.73"}
            with _server("127.0.0.73", port):
                wait_until(lambda: _is_served_by(client, "127.0.0.73"), _SECONDS, "the other")
