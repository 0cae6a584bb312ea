"""A credential is kept from a good answer alone, and what was there before stays until then."""

import json
import stat
import threading
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.config.server_address import DIRECT, Way
from controller_client.server_link.enrolment import enrol, fetch, rotate
from controller_client.server_link.errors import EnrolmentFailed

OLD, NEW = (f"ctl_{digit * 16}_{'s' * 43}" for digit in "01")
GOOD = {"credential": NEW, "project": "p", "controller": "web-1"}


class _Answering(BaseHTTPRequestHandler):
    """Answers each request with the status, the headers and the body that a test has set."""

    status: ClassVar[int]
    body: ClassVar[bytes]
    location: ClassVar[str]
    asked: ClassVar[list[tuple[str, dict[str, str], bytes]]]

    def _answer(self) -> None:
        sent = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.asked.append((f"{self.command} {self.path}", dict(self.headers), sent))
        self.send_response(self.status)
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(self.body)

    def do_POST(self) -> None:
        """Answer a request for a credential."""
        self._answer()

    def do_GET(self) -> None:
        """Answer a request for a page."""
        self._answer()

    def do_CONNECT(self) -> None:
        """Answer as a proxy."""
        self._answer()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def answering(status: int, body: object, location: str = "") -> Iterator[str]:
    """Serve one answer; yields the server's address."""
    _Answering.status, _Answering.location, _Answering.asked = status, location, []
    _Answering.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    with HTTPServer(("127.0.0.1", 0), _Answering) as server:
        server.timeout = 30
        serving = threading.Thread(target=server.handle_request, daemon=True)
        serving.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            serving.join()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The place of the credential, which is to be made."""
    return tmp_path / "state" / "credential"


@pytest.fixture
def enrolled(file: Path) -> Path:
    """The credential of a host that is enrolled."""
    file.parent.mkdir(mode=0o700)
    file.write_text(f"{OLD}\n")
    file.chmod(0o600)
    return file


def _rotate(address: str, file: Path) -> str:
    return rotate(server=f"http://{address}", credential_file=file)


def _enrol_again(address: str, file: Path) -> tuple[str, bool]:
    return enrol(server=f"http://{address}", code="enr_x", credential_file=file, is_replacing=True)


def _files(file: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in file.parent.iterdir()}


@pytest.mark.parametrize(("awaits", "is_told"), [(True, True), (False, False), ("no", False)])
def test_a_credential_is_kept_for_its_owner_alone(
    file: Path, awaits: object, is_told: bool
) -> None:
    with answering(200, {**GOOD, "awaits_approval": awaits}) as address:
        told = enrol(
            server=f"http://{address}",
            code="enr_x",
            credential_file=file,
            is_replacing=False,
            name="web-1",
            labels=["gpu"],
        )
    assert told == ("p/web-1", is_told)
    assert _files(file) == {"credential": f"{NEW}\n"}
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, file.parent)] == [0o600, 0o700]
    ((line, headers, sent),) = _Answering.asked
    assert line == "POST /controllers/enrol"
    assert json.loads(sent) == {"code": "enr_x", "name": "web-1", "labels": ["gpu"]}
    assert "Authorization" not in headers


def test_a_rotation_shows_the_old_credential_and_keeps_it_beside_the_new(enrolled: Path) -> None:
    with answering(200, GOOD) as address:
        assert _rotate(address, enrolled) == "p/web-1"
    assert _files(enrolled) == {"credential": f"{NEW}\n", "credential.earlier": f"{OLD}\n"}
    ((line, headers, sent),) = _Answering.asked
    assert (line, sent) == ("POST /controllers/rotate", b"{}")
    assert headers["Authorization"] == f"Bearer {OLD}"


def test_another_enrolment_leaves_no_credential_of_an_earlier_server(enrolled: Path) -> None:
    enrolled.with_name("credential.earlier").write_text("of another server")
    with answering(200, GOOD) as address:
        enrol(server=f"http://{address}", code="enr_x", credential_file=enrolled, is_replacing=True)
    assert _files(enrolled) == {"credential": f"{NEW}\n"}


def test_a_code_is_not_used_up_for_a_host_that_has_a_credential(enrolled: Path) -> None:
    with pytest.raises(ConfigurationError, match="--replace"):
        enrol(
            server="http://127.0.0.1:9", code="enr_x", credential_file=enrolled, is_replacing=False
        )
    assert _files(enrolled) == {"credential": f"{OLD}\n"}


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, {**GOOD, "credential": "hl_a_b"}, "without a credential"),
        (200, {**GOOD, "credential": f"{NEW}\nmore"}, "without a credential"),
        (200, {"project": "p"}, "without a credential"),
        (200, [GOOD], "not as a Holdline server does"),
        (200, b"\xff", "not as a Holdline server does"),
        (200, b"[" * 16_000, "not as a Holdline server does"),
        (200, b'{"credential": "' + b"x" * 20_000, "not as a Holdline server does"),
        (201, GOOD, "refused"),
        (403, {"error": "No", "hint": "Ask again"}, r"refused \(403\): No. Ask again."),
        (403, {"error": "x" * 600}, "x{500}$"),
    ],
)
@pytest.mark.parametrize("ask", [_rotate, _enrol_again])
def test_an_answer_without_a_credential_changes_nothing(
    enrolled: Path, status: int, body: object, said: str, ask: Callable[[str, Path], object]
) -> None:
    with answering(status, body) as address, pytest.raises(EnrolmentFailed, match=said):
        ask(address, enrolled)
    assert _files(enrolled) == {"credential": f"{OLD}\n"}


def test_a_credential_is_not_carried_to_where_a_redirect_leads(enrolled: Path) -> None:
    elsewhere = "http://127.0.0.1:9/elsewhere"
    with (
        answering(307, b"", elsewhere) as address,
        pytest.raises(EnrolmentFailed, match="HTTP 307"),
    ):
        _rotate(address, enrolled)
    assert len(_Answering.asked) == 1


def test_a_page_is_fetched_and_an_error_is_none() -> None:
    with answering(200, b"content") as address:
        assert fetch(f"ws://{address}/ws/", DIRECT, "/page") == b"content"
    with (
        answering(404, b"content") as address,
        pytest.raises(EnrolmentFailed, match="/page with HTTP 404"),
    ):
        fetch(f"ws://{address}/ws/", DIRECT, "/page")
    with pytest.raises(EnrolmentFailed, match="cannot be reached"):
        fetch(f"ws://{address}/ws/", DIRECT, "/page")


@pytest.mark.parametrize(
    ("login", "shown"), [("", None), ("ada:w%23rd@", b"ada:w#rd"), ("ada:@", b"ada:")]
)
def test_a_proxy_is_asked_for_the_server_with_its_own_login(
    login: str, shown: bytes | None
) -> None:
    with answering(403, b"") as address, pytest.raises(EnrolmentFailed, match="403"):
        fetch("ws://localhost/ws/", Way(proxy=f"http://{login}{address}"), "/page")
    ((line, headers, _),) = _Answering.asked
    assert line == "CONNECT localhost:80"
    basic = None if shown is None else f"Basic {b64encode(shown).decode()}"
    assert headers.get("Proxy-Authorization") == basic


def test_words_of_a_server_do_nothing_to_a_terminal(file: Path) -> None:
    named = {**GOOD, "project": "p\x1b]0;x\x07", "controller": "web\u202e"}
    with answering(200, named) as address:
        told, _ = _enrol_again(address, file)
    assert told == r"p\u{001b}]0;x\u{0007}/web\u{202e}"
    with (
        answering(400, {"error": "no\x1b[2J", "hint": "ask\u202e"}) as address,
        pytest.raises(EnrolmentFailed) as refused,
    ):
        _enrol_again(address, file)
    assert r"no\u{001b}[2J" in str(refused.value)
    assert r"ask\u{202e}" in str(refused.value)
