"""Enrolment and rotation: get this host's credential from the server.

Enrolment uses a code that works once; rotation uses the credential that the host has. Each is one
request with the standard library's HTTP client: certificates are verified, proxies of the
environment are ignored (a proxy is an option), and redirects are not followed.
"""

import errno
import http.client
import json
import os
import tempfile
from base64 import b64encode
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Self
from urllib.parse import SplitResult, unquote, urlsplit

from controller_client.config.errors import ConfigurationError
from controller_client.config.places import CREDENTIAL, earlier_credential_file, read_credential
from controller_client.config.server_address import DIRECT, Way, check_server_url
from controller_client.protocol.sentences import sentences
from controller_client.protocol.terminal_text.unseen import without_controls
from controller_client.server_link.errors import AnswerLost, EnrolmentFailed
from controller_client.server_link.network.tls import client_context, with_hint
from controller_client.session_files.directory import sync_directory

ENROL_PATH: Final = "/controllers/enrol"
ROTATE_PATH: Final = "/controllers/rotate"
ANSWER_SECONDS: Final = 30.0
# The limit of the connection and of the TLS handshake: a port without TLS may stay silent.
HANDSHAKE_SECONDS: Final = 5.0
_MAX_ANSWER_BYTES: Final = 16_384
# No credential is longer, with its newline.
_RESERVED_BYTES: Final = 128
_AGAIN: Final = (
    "The server may have made a new credential all the same; then the one here works for a day at "
    "most. Rotate again in a minute"
)
_SILENT: Final = (
    "Is this the port of a Holdline server? If the server speaks TLS, begin the address with wss://"
)
_MAX_FETCHED_BYTES: Final = 1 << 20


def enrol(
    *,
    server: str,
    code: str,
    credential_file: Path,
    is_replacing: bool,
    way: Way = DIRECT,
    name: str = "",
    labels: Sequence[str] = (),
) -> tuple[str, bool]:
    """Use ``code`` up and write the credential that the server gives for it.

    ``name`` is this host's own, which counts if the code is a key for a number of hosts.

    Returns the host's "PROJECT/NAME", and whether an operator has to approve the host first. Raises
    ConfigurationError, EnrolmentFailed.
    """
    url = check_server_url(server)
    if credential_file.exists() and not is_replacing:
        raise ConfigurationError(
            f"this host has a credential in {credential_file} already; use --replace to replace it"
        )
    with _Draft(credential_file) as draft:
        answer, awaits_approval = _ask(
            url, way, ENROL_PATH, {"code": code, "name": name, "labels": list(labels)}, {}
        )
        return draft.keep(answer, is_rotation=False), awaits_approval


def rotate(*, server: str, credential_file: Path, way: Way = DIRECT) -> str:
    """Replace the credential in the file by a new one of the server.

    Returns the host's "PROJECT/NAME". Raises ConfigurationError, EnrolmentFailed.
    """
    url, credential = check_server_url(server), read_credential(credential_file)
    with _Draft(credential_file) as draft:
        try:
            answer, _ = _ask(url, way, ROTATE_PATH, {}, {"Authorization": f"Bearer {credential}"})
        except AnswerLost as error:
            raise EnrolmentFailed(f"{error}. {_AGAIN}") from None
        return draft.keep(answer, is_rotation=True)


class _Draft:
    """The credential's new file, written beside the old one and put in its place by ``keep``.

    It is created before the server is asked: a code works once, and must not be used up if the
    credential cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        try:
            if self._path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._descriptor, name = tempfile.mkstemp(
                prefix=f".{self._path.name}.", dir=self._path.parent
            )
        except OSError as error:
            raise self._unwritable(error) from None
        self._fresh = Path(name)
        try:
            # A full disk takes an empty file, and then nothing that is written into it.
            with os.fdopen(os.dup(self._descriptor), "wb") as file:
                file.write(b"\n" * _RESERVED_BYTES)
            os.fsync(self._descriptor)
        except OSError as error:
            self.__exit__()
            raise self._unwritable(error) from None
        return self

    def _unwritable(self, error: OSError) -> ConfigurationError:
        return ConfigurationError(
            f"cannot write {self._path}: {error.strerror}; name another file with --credential-file"
        )

    def __exit__(self, *_error: object) -> None:
        os.close(self._descriptor)
        self._fresh.unlink(missing_ok=True)

    def keep(self, answer: dict[str, str], *, is_rotation: bool) -> str:
        """Put the credential of the answer in its place; return the host's name.

        A rotated credential stays beside the new one: a server whose database was restored may know
        no other. That of another enrolment may be another server's.
        """
        line = f"{answer['credential']}\n".encode("ascii")
        os.pwrite(self._descriptor, line, 0)
        os.truncate(self._descriptor, len(line))
        os.fsync(self._descriptor)
        earlier = earlier_credential_file(self._path)
        # A file system without hard links keeps none, nor does a place that something else has. The
        # new credential is written all the same: the server may know no other by now.
        with suppress(OSError):
            earlier.unlink(missing_ok=True)
            if is_rotation:
                os.link(self._path, earlier)
        self._fresh.replace(self._path)
        sync_directory(self._path.parent)
        return f"{answer['project']}/{answer['controller']}"


def _ask(
    url: str, way: Way, path: str, body: Mapping[str, str | list[str]], headers: dict[str, str]
) -> tuple[dict[str, str], bool]:
    """Send one request. Returns the credential with its names, and whether approval is missing."""
    connection, failed = web_connection(url, way), EnrolmentFailed
    try:
        connection.connect()
        failed = AnswerLost
        connection.sock.settimeout(ANSWER_SECONDS)
        connection.request(
            "POST", path, json.dumps(body), {"Content-Type": "application/json", **headers}
        )
        with connection.getresponse() as response:
            status, data = response.status, response.read(_MAX_ANSWER_BYTES)
    except (OSError, http.client.HTTPException) as error:
        told = f"the server cannot be reached: {error or type(error).__name__}"
        if url.startswith("wss:"):
            told = with_hint(told, error, timeout=TimeoutError)
        elif isinstance(error, TimeoutError):
            told = sentences(told, _SILENT)
        raise failed(told) from None
    finally:
        connection.close()
    return _checked(status, data)


def fetch(url: str, way: Way, path: str) -> bytes:
    """Return what the server of the socket's address ``url`` has at ``path``.

    Raises ConfigurationError, EnrolmentFailed.
    """
    connection = web_connection(url, way)
    try:
        connection.request("GET", path)
        with connection.getresponse() as response:
            status, data = response.status, response.read(_MAX_FETCHED_BYTES)
    except (OSError, http.client.HTTPException) as error:
        raise EnrolmentFailed(
            f"the server cannot be reached: {error or type(error).__name__}"
        ) from None
    finally:
        connection.close()
    if status != 200:
        raise EnrolmentFailed(f"the server answered {path} with HTTP {status}")
    return data


def web_connection(url: str, way: Way) -> http.client.HTTPConnection:
    """Return a connection, not made yet, to the web server of the socket's address ``url``."""
    parts = urlsplit(url)
    is_secure = parts.scheme == "wss"
    host, port = parts.hostname or "", parts.port or (443 if is_secure else 80)
    proxy = urlsplit(way.proxy) if way.proxy else None
    at = (host, port) if proxy is None else (proxy.hostname or "", proxy.port)
    connection = (
        http.client.HTTPSConnection(
            *at, timeout=HANDSHAKE_SECONDS, context=client_context(way.ca_file)
        )
        if is_secure
        else http.client.HTTPConnection(*at, timeout=HANDSHAKE_SECONDS)
    )
    if proxy is not None:
        connection.set_tunnel(host, port, _proxy_login(proxy))
    return connection


def _proxy_login(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    login = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": f"Basic {b64encode(login.encode()).decode('ascii')}"}


def _checked(status: int, data: bytes) -> tuple[dict[str, str], bool]:
    try:
        answer = json.loads(data)
    except (ValueError, RecursionError):
        answer = None
    # A server that failed, or a proxy before one, does not say how far the server came.
    failed = AnswerLost if status >= 500 else EnrolmentFailed
    if not isinstance(answer, dict):
        raise failed(
            f"the server answered with HTTP {status}, not as a Holdline server does; check --server"
        )
    if status != 200:
        words = sentences(*(str(answer[name]) for name in ("error", "hint") if answer.get(name)))
        raise failed(f"the server refused ({status}): {without_controls(words[:500])}")
    # These and the words above are shown on the terminal of whoever enrols the host.
    found = {
        name: without_controls(str(answer.get(name, "")))
        for name in ("credential", "project", "controller")
    }
    if not CREDENTIAL.fullmatch(found["credential"]):
        raise EnrolmentFailed("the server answered without a credential")
    return found, answer.get("awaits_approval") is True
