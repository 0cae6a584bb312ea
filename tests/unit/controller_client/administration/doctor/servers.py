"""Servers of this machine that the doctor is sent to."""

import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Well(BaseHTTPRequestHandler):
    """A server that is well, and refuses a handshake without a credential."""

    health, upgrade, off_seconds = 200, 403, 0.0

    def do_GET(self) -> None:
        """Answer the question about health, or the upgrade."""
        is_health = self.path == "/healthz"
        self.send_response_only(self.health if is_health else self.upgrade)
        now = time.time()
        self.send_header("Date", formatdate(now - self.off_seconds, usegmt=True))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_CONNECT(self) -> None:
        """Let nothing pass, as a proxy that does not know the server."""
        self.send_error(403, "no")

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def serving(
    certificate: Path | None = None, handler: type[BaseHTTPRequestHandler] = Well
) -> Iterator[int]:
    """Serve on a port of this machine, with TLS if there is a certificate; yields the port."""
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()
