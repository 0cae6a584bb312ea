"""An HTTP listener that targets point to: it keeps every request, and answers as it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Request:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Listener:
    """The listener in a test: its URL, what it received, and how it answers."""

    url: str
    requests: list[Request] = field(default_factory=list)
    status: int = 204
    location: str = ""
    is_silent: bool = False
    released: threading.Event = field(default_factory=threading.Event)

    def release(self) -> None:
        """Let the requests go that a silent listener holds."""
        self.is_silent = False
        self.released.set()


@contextmanager
def listening(port: int = 0) -> Iterator[Listener]:
    """Run a listener on the loopback, in threads of its own."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
            headers = {name.lower(): value for name, value in self.headers.items()}
            listener.requests.append(Request(self.path, headers, body))
            if listener.is_silent:
                listener.released.wait(60)
            self.send_response(listener.status)
            if listener.location:
                self.send_header("location", listener.location)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """The tests look at the requests themselves."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    listener = Listener(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield listener
    finally:
        listener.release()
        server.shutdown()
        server.server_close()
        thread.join()
