"""A proxy that adds the bearer token for clients of ``/mcp`` that cannot send one.

Answers are passed on as they come.
"""

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_HOP_BY_HOP = {"connection", "content-length", "transfer-encoding"}


@contextmanager
def bearer_proxy(port: int, token: str) -> Iterator[str]:
    """The origin of a proxy in front of ``127.0.0.1:port``."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_one_request(self) -> None:
            try:
                super().handle_one_request()
            except OSError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() not in _HOP_BY_HOP
            }
            upstream = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                upstream.request(
                    self.command, self.path, body, {"Authorization": f"Bearer {token}", **headers}
                )
                self._answer(upstream.getresponse())
            except (OSError, http.client.HTTPException):
                # The client or the server has closed its connection too early.
                self.close_connection = True
            finally:
                upstream.close()

        def _answer(self, response: http.client.HTTPResponse) -> None:
            self.send_response_only(response.status)
            for name, value in response.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while data := response.read1(65536):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
                self.wfile.flush()
            self.wfile.write(b"0\r\n\r\n")

        do_GET = do_POST = do_DELETE = do_OPTIONS = do_PUT = _pass_on  # noqa: N815 - the library's names

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        serving = threading.Thread(target=server.serve_forever, name="bearer proxy")
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            serving.join()
