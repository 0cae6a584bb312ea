"""Getting a credential from the server: by a code that works once, or in place of the one the host has.

One request over plain HTTP of the standard library: certificates verified, no proxy of the environment, no redirect followed.
"""

import http.client
import json
import os
import ssl
from pathlib import Path
from typing import Final, Self
from urllib.parse import urlsplit

from controller_client.config import CREDENTIAL, check_server_url, read_credential
from controller_client.errors import ConfigurationError, EnrolmentFailed

ENROL_PATH: Final = "/controllers/enrol"
ROTATE_PATH: Final = "/controllers/rotate"
ANSWER_SECONDS: Final = 30.0
_MAX_ANSWER_BYTES: Final = 16_384
_WEB_SCHEMES: Final = {"https": "wss", "http": "ws"}


def enrol(*, server: str, code: str, credential_file: Path, is_replacing: bool) -> tuple[str, bool]:
    """Uses ``code`` up and writes the credential; "PROJECT/NAME" of what this host is now, and whether an operator has to approve it first.

    Raises ConfigurationError, EnrolmentFailed.
    """
    url = _socket_url(server)
    if credential_file.exists() and not is_replacing:
        raise ConfigurationError(f"{credential_file} exists; --replace gives it up")
    with _Draft(credential_file) as draft:
        answer, awaits_approval = _ask(url, ENROL_PATH, {"code": code}, {})
        return draft.keep(answer), awaits_approval


def rotate(*, server: str, credential_file: Path) -> str:
    """Asks for another credential with the one in the file, and puts it in its place. Raises ConfigurationError, EnrolmentFailed."""
    url, credential = _socket_url(server), read_credential(credential_file)
    with _Draft(credential_file) as draft:
        answer, _ = _ask(url, ROTATE_PATH, {}, {"Authorization": f"Bearer {credential}"})
        return draft.keep(answer)


def _socket_url(server: str) -> str:
    """``server`` as ``run`` takes it; https:// and http:// are good, too, under the same rules."""
    scheme, separator, rest = server.partition("://")
    return check_server_url(f"{_WEB_SCHEMES.get(scheme, scheme)}{separator}{rest}")


class _Draft:
    """The file that is to be: made before the server is asked, as a code is good for one answer only."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._fresh = path.with_name(f".{path.name}.{os.getpid()}")

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor = os.open(self._fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise ConfigurationError(f"cannot write {self._path}: {error.strerror}") from None
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)
        self._fresh.unlink(missing_ok=True)

    def keep(self, answer: dict[str, str]) -> str:
        os.write(self._descriptor, f"{answer['credential']}\n".encode("ascii"))
        os.fsync(self._descriptor)
        self._fresh.replace(self._path)
        return f"{answer['project']}/{answer['controller']}"


def _ask(url: str, path: str, body: dict[str, str], headers: dict[str, str]) -> tuple[dict[str, str], bool]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    if parts.scheme == "wss":
        context = ssl.create_default_context()
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        connection: http.client.HTTPConnection = http.client.HTTPSConnection(host, parts.port, timeout=ANSWER_SECONDS, context=context)
    else:
        connection = http.client.HTTPConnection(host, parts.port, timeout=ANSWER_SECONDS)
    try:
        connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
        response = connection.getresponse()
        status, data = response.status, response.read(_MAX_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise EnrolmentFailed(f"the server cannot be reached: {error or type(error).__name__}") from None
    finally:
        connection.close()
    return _checked(status, data)


def _checked(status: int, data: bytes) -> tuple[dict[str, str], bool]:
    try:
        answer = json.loads(data)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise EnrolmentFailed(f"the server answered with HTTP {status}")
    if status != 200:
        words = " ".join(str(answer[name]) for name in ("error", "hint") if answer.get(name))
        raise EnrolmentFailed(f"the server refused ({status}): {words[:500]}")
    found = {name: str(answer.get(name, "")) for name in ("credential", "project", "controller")}
    if not CREDENTIAL.fullmatch(found["credential"]):
        raise EnrolmentFailed("the server answered without a credential")
    return found, answer.get("awaits_approval") is True
