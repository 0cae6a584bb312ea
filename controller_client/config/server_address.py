"""The address of the server and the way to it, as an operator writes them.

Every refusal is a ConfigurationError whose text says what to change.
"""

import ipaddress
import ssl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import SplitResult, unquote, urlsplit, urlunsplit

from controller_client.config.errors import ConfigurationError

SOCKET_PATH: Final = "/ws/controller/"
_SOCKET_SCHEMES: Final = {"https": "wss", "http": "ws"}


@dataclass(frozen=True, slots=True)
class Way:
    """The way to the server: a proxy, if one is named, and whose certificates are trusted.

    ``ca_file`` None stands for the system's store. ``proxy`` may hold a password, so it is kept out
    of every representation.
    """

    ca_file: Path | None = None
    proxy: str | None = field(default=None, repr=False)


DIRECT: Final = Way()


def check_server_url(url: str) -> str:
    """Return the address of the server's WebSocket.

    It is wss://, or ws:// to this machine, and holds nothing secret. The address of the web server,
    https://HOST, stands for wss://HOST/ws/controller/.
    """
    try:
        parts = urlsplit(url)
        host, _ = _name_in(parts), parts.port
    except ValueError:
        raise ConfigurationError("--server is not a URL: wss://HOST/ws/controller/") from None
    if not _is_one_word(parts.path) or not parts.path.isascii():
        raise ConfigurationError("--server has a path that no request can name; write it in ASCII")
    if parts.scheme in _SOCKET_SCHEMES:
        parts = _socket_address(parts)
    if parts.scheme not in {"ws", "wss"} or not host:
        raise ConfigurationError("--server must look like wss://HOST/ws/controller/")
    if parts.username is not None or parts.query or parts.fragment:
        raise ConfigurationError(
            "--server must have no user, query or fragment; the credential comes from "
            "--credential-file"
        )
    if parts.scheme == "ws" and not is_loopback(host):
        raise ConfigurationError(
            "ws:// is unencrypted and allowed to a loopback address only; use wss://"
        )
    return urlunsplit(parts)


def _name_in(parts: SplitResult) -> str:
    """Return the host. Raises ValueError for a name that nobody could look up, such as a..b."""
    host = parts.hostname or ""
    host.encode("idna")
    if not _is_one_word(host):
        raise ValueError("blanks and control characters are in no name")
    return host


def _is_one_word(text: str) -> bool:
    return text.isprintable() and not any(map(str.isspace, text))


def _socket_address(parts: SplitResult) -> SplitResult:
    path = SOCKET_PATH if parts.path in {"", "/"} else parts.path
    return parts._replace(scheme=_SOCKET_SCHEMES[parts.scheme], path=path)


def is_loopback(host: str) -> bool:
    """Tell whether ``host`` can be nothing but this machine."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_way(ca_file: Path | None, proxy: str | None) -> Way:
    """Return the way to the server after a look at its parts."""
    if ca_file is not None:
        try:
            ssl.create_default_context(cafile=ca_file)
        except ssl.SSLError:
            raise ConfigurationError(
                f"the file of --ca-file {ca_file} has no certificates in the form PEM; "
                "openssl x509 -inform der -in FILE -out FILE.pem makes one of the form DER"
            ) from None
        except OSError as error:
            raise ConfigurationError(
                f"cannot read the file of --ca-file {ca_file}: {error.strerror}"
            ) from None
    return Way(ca_file, _checked_proxy(proxy) if proxy else None)


def _checked_proxy(proxy: str) -> str:
    try:
        parts = urlsplit(proxy)
        is_right = parts.scheme == "http" and _name_in(parts) and parts.port
        # The WebSocket's library refuses these too, with an error that repeats the password.
        is_bare = parts.path in {"", "/"} and not parts.query and not parts.fragment
        has_login = (parts.username is None) == (parts.password is None)
        for word in (parts.username, parts.password):
            unquote(word or "", errors="strict")
    except ValueError:
        is_right = is_bare = has_login = False
    if not (is_right and is_bare and has_login):
        raise ConfigurationError(
            "--proxy must look like http://[USER:PASSWORD@]HOST:PORT, with %2F, %3F, %23 and %40 "
            "for / ? # and @ in the password"
        )
    return proxy
