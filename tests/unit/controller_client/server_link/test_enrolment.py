"""A code is used up, and a credential replaced, only if what comes for it can be kept."""

import http.client
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

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
