"""A code is used up, and a credential replaced, only if what comes for it can be kept."""

import http.client
import resource
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.server_link import enrolment
from controller_client.server_link.errors import EnrolmentFailed

CREDENTIAL = f"ctl_{'0' * 16}_{'s' * 43}\n"
# Nobody listens there.
SERVER = "http://127.0.0.1:9"


@contextmanager
def full_disk() -> Iterator[None]:
    """A disk that takes new files, and no byte into them."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_asked_for_while_the_disk_is_full(tmp_path: Path) -> None:
    with full_disk(), pytest.raises(ConfigurationError, match="cannot write"):
        enrolment.enrol(
            server=SERVER, code="enr_x", credential_file=tmp_path / "file", is_replacing=False
        )
    assert list(tmp_path.iterdir()) == []


class _Silent(http.client.HTTPConnection):
    """A connection to a server that does what it is asked, and whose answer gets lost."""

    def connect(self) -> None:
        """Connect to nothing: there is a socket only in name."""
        self.sock = type("Socket", (), {"settimeout": lambda *_: None, "close": lambda *_: None})()

    def request(self, *_: object, **__: object) -> None:
        """Lose the answer to the request."""
        raise TimeoutError("timed out")


def test_a_rotation_whose_answer_is_lost_says_to_rotate_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credential"
    file.write_text(CREDENTIAL)
    file.chmod(0o600)
    with pytest.raises(EnrolmentFailed, match="refused") as unasked:
        enrolment.rotate(server=SERVER, credential_file=file)
    assert "Rotate again" not in str(unasked.value)
    monkeypatch.setattr(enrolment, "web_connection", lambda *_: _Silent("127.0.0.1"))
    with pytest.raises(EnrolmentFailed, match="Rotate again in a minute"):
        enrolment.rotate(server=SERVER, credential_file=file)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("credential", CREDENTIAL)
    ]


class _Answering(BaseHTTPRequestHandler):
    """Answers each request with the status and the body that a test has set."""

    answer: ClassVar[tuple[int, bytes]]

    def do_POST(self) -> None:
        """Answer a request for a credential."""
        self.rfile.read(int(self.headers["Content-Length"]))
        status, body = self.answer
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.mark.parametrize(
    ("answer", "is_unknown"),
    [
        ((502, b"<html>Bad Gateway</html>"), True),
        ((500, b'{"error": "Something failed."}'), True),
        ((401, b'{"error": "No such credential."}'), False),
        ((404, b"<html>Not Found</html>"), False),
    ],
)
def test_a_rotation_that_may_have_been_done_says_to_rotate_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: tuple[int, bytes], is_unknown: bool
) -> None:
    file = tmp_path / "credential"
    file.write_text(CREDENTIAL)
    file.chmod(0o600)
    with HTTPServer(("127.0.0.1", 0), _Answering) as server:
        monkeypatch.setattr(_Answering, "answer", answer, raising=False)
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        with pytest.raises(EnrolmentFailed) as failed:
            enrolment.rotate(server=f"http://127.0.0.1:{server.server_port}", credential_file=file)
        serving.join()
    assert ("Rotate again in a minute" in str(failed.value)) == is_unknown
    assert file.read_text() == CREDENTIAL
