"""A code is used up, and a credential replaced, only if what comes for it can be kept."""

import http.client
import json
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


@contextmanager
def answering(monkeypatch: pytest.MonkeyPatch, status: int, body: bytes) -> Iterator[str]:
    """A server that gives one answer; yields its address."""
    monkeypatch.setattr(_Answering, "answer", (status, body), raising=False)
    with HTTPServer(("127.0.0.1", 0), _Answering) as server:
        server.timeout = 30
        serving = threading.Thread(target=server.handle_request, daemon=True)
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            serving.join()


def _given(credential: str) -> bytes:
    named = {"credential": credential, "project": "first", "controller": "host"}
    return json.dumps(named).encode()


NEW = f"ctl_{'1' * 16}_{'t' * 43}"


def test_a_rotation_keeps_the_earlier_credential_and_the_latest_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credential"
    file.write_text(CREDENTIAL)
    file.chmod(0o600)
    for number in range(2):
        with answering(monkeypatch, 200, _given(f"{NEW}{number}")) as server:
            assert enrolment.rotate(server=server, credential_file=file) == "first/host"
    kept = {path.name: path.read_text() for path in tmp_path.iterdir()}
    assert kept == {"credential": f"{NEW}1\n", "credential.earlier": f"{NEW}0\n"}
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_credential_that_cannot_be_kept_beside_costs_no_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "credential"
    file.write_text(CREDENTIAL)
    file.chmod(0o600)
    (tmp_path / "credential.earlier").mkdir()
    with answering(monkeypatch, 200, _given(NEW)) as server:
        enrolment.rotate(server=server, credential_file=file)
    assert file.read_text() == f"{NEW}\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["credential", "credential.earlier"]


def test_an_enrolment_keeps_no_credential_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, earlier = tmp_path / "credential", tmp_path / "credential.earlier"
    for path in (file, earlier):
        path.write_text(CREDENTIAL)
    with answering(monkeypatch, 200, _given(NEW)) as server:
        enrolled = enrolment.enrol(
            server=server, code="enr_a_b", credential_file=file, is_replacing=True
        )
    assert enrolled == ("first/host", False)
    assert [path.name for path in tmp_path.iterdir()] == ["credential"]
    # Whoever could read the file of before cannot read this one.
    assert (file.read_text(), file.stat().st_mode & 0o777) == (f"{NEW}\n", 0o600)


def test_a_code_is_not_used_up_for_a_place_that_takes_no_credential(tmp_path: Path) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    for place in (tmp_path / "directory", tmp_path / "file/credential"):
        with pytest.raises(ConfigurationError, match="cannot write"):
            enrolment.enrol(server=SERVER, code="enr_a_b", credential_file=place, is_replacing=True)
    assert [path.name for path in sorted(tmp_path.iterdir())] == ["directory", "file"]


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'{"credential": null}',
        _given("hl_a_b"),
        _given("ctl_a_b\nctl_c_d"),
        _given("ctl_a_\u00e9"),
        b'{"credential": {"ctl_a_b": 1}}',
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_an_answer_without_a_credential_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    file = tmp_path / "credential"
    file.write_text(CREDENTIAL)
    file.chmod(0o600)
    for status in (200, 403):
        with answering(monkeypatch, status, body) as server, pytest.raises(EnrolmentFailed):
            enrolment.rotate(server=server, credential_file=file)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [
        ("credential", CREDENTIAL)
    ]


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
    with answering(monkeypatch, *answer) as server, pytest.raises(EnrolmentFailed) as failed:
        enrolment.rotate(server=server, credential_file=file)
    assert ("Rotate again in a minute" in str(failed.value)) == is_unknown
    assert file.read_text() == CREDENTIAL
