"""The checks of the way to the server: name, proxy, TLS, clock and the upgrade to a WebSocket."""

import http.client
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import closing
from email.utils import parsedate_to_datetime
from typing import Final
from urllib.parse import urlsplit

from controller_client.administration.doctor.finding import Finding
from controller_client.config.errors import ConfigurationError
from controller_client.config.server_address import Way
from controller_client.server_link.enrolment import web_connection

PATIENCE_SECONDS: Final = 5.0
_CLOCK_SECONDS: Final = 60.0
_MOST_BYTES: Final = 65536
_HEALTH_PATH: Final = "/healthz"
_UPGRADE: Final = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "aG9sZGxpbmUtZG9jdG9yLQ==",
}
# The server's answers to a handshake without a credential.
_UPGRADED: Final = frozenset({101, 401, 403})
_TRUST: Final = (
    "if this server's authority is your own, name its file: --ca-file, or ca_file in the "
    "configuration"
)


def examine_network(url: str, way: Way) -> Iterator[Finding]:
    """Yield what is found on the way to the server, up to the first thing that stops it."""
    parts = urlsplit(way.proxy or url)
    host = parts.hostname or ""
    port = parts.port or (443 if url.startswith("wss:") else 80)
    what = "proxy" if way.proxy else "server"
    name = _resolved(host)
    yield name
    if name.level == "problem":
        return
    port_finding = _reached(what, host, port)
    yield port_finding
    if port_finding.level == "problem":
        return
    try:
        connection = web_connection(url, way)
    except ConfigurationError as error:
        yield Finding("ca_file", "problem", str(error), "name a file of certificates in PEM")
        return
    with closing(connection):
        connected = _connected(connection, url)
        yield connected
        if connected.level == "problem":
            return
        yield from _asked(connection)
    yield _upgraded(url, way)


def _resolved(host: str) -> Finding:
    try:
        addresses = sorted({str(found[4][0]) for found in socket.getaddrinfo(host, None)})
    except OSError as error:
        return Finding(
            "dns",
            "problem",
            f"{host} has no address: {error.strerror or error}",
            "correct the name in server, or the name servers in /etc/resolv.conf",
        )
    return Finding("dns", "ok", f"{host} is {', '.join(addresses)}")


def _reached(what: str, host: str, port: int) -> Finding:
    try:
        socket.create_connection((host, port), PATIENCE_SECONDS).close()
    except OSError as error:
        remedy = "start the server, or correct the port" if what == "server" else "correct proxy"
        if isinstance(error, TimeoutError):
            remedy = "a firewall drops what is sent: open the way to this port, or name a proxy"
        return Finding(
            what, "problem", f"{host}:{port} does not answer: {error.strerror or error}", remedy
        )
    return Finding(what, "ok", f"{host}:{port} answers")


def _connected(connection: http.client.HTTPConnection, url: str) -> Finding:
    """Connect through the proxy, if there is one, and with TLS, unless the server is local."""
    connection.timeout = PATIENCE_SECONDS
    is_secure = url.startswith("wss:")
    try:
        connection.connect()
    except ssl.SSLCertVerificationError as error:
        return Finding("tls", "problem", f"the certificate: {error.verify_message}", _cure(error))
    except (ssl.SSLError, TimeoutError) as error:
        if not is_secure:
            return Finding("tls", "problem", str(error), "correct server")
        return Finding(
            "tls",
            "problem",
            f"no TLS on this port within {PATIENCE_SECONDS:g} s: {error}",
            "does this port speak TLS? Correct the port, or for a local server write http://",
        )
    except (OSError, http.client.HTTPException) as error:
        return Finding("proxy", "problem", str(error), "allow CONNECT to the server in the proxy")
    if not is_secure:
        return Finding("tls", "note", "not encrypted, to this machine only")
    return Finding("tls", "ok", "the certificate is trusted")


def _cure(error: ssl.SSLCertVerificationError) -> str:
    if "expired" in error.verify_message:
        return "the server needs a new certificate, or this host's clock is wrong"
    if "mismatch" in error.verify_message or "not valid for" in error.verify_message:
        return "use the name in the certificate as server"
    return _TRUST


def _asked(connection: http.client.HTTPConnection) -> Iterator[Finding]:
    """Ask whether the server is well, and what time it is there."""
    try:
        connection.request("GET", _HEALTH_PATH)
        answer = connection.getresponse()
        answer.read(_MOST_BYTES)
    except (OSError, http.client.HTTPException) as error:
        yield Finding("health", "problem", f"no answer: {error!r}", "look at the server's log")
        return
    if answer.status != 200:
        yield Finding(
            "health",
            "problem",
            f"{_HEALTH_PATH} is answered with HTTP {answer.status}",
            "is this a Holdline server? If so, look at its log",
        )
    else:
        yield Finding("health", "ok", "the server is well")
    yield _clock(answer.getheader("Date"))


def _clock(told: str | None) -> Finding:
    try:
        off = time.time() - parsedate_to_datetime(told or "").timestamp()
    except ValueError:
        return Finding("clock", "note", "the server does not tell its time")
    if abs(off) > _CLOCK_SECONDS:
        return Finding(
            "clock",
            "warning",
            f"this host's clock is {off:+.0f} s off the server's",
            "set the clock: timedatectl set-ntp true",
        )
    return Finding("clock", "ok", f"within {abs(off) + 1:.0f} s of the server's")


def _upgraded(url: str, way: Way) -> Finding:
    """Ask for a WebSocket without a credential: the server refuses, a proxy does not know it."""
    connection = web_connection(url, way)
    connection.timeout = PATIENCE_SECONDS
    try:
        connection.request("GET", urlsplit(url).path or "/", headers=_UPGRADE)
        status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        return Finding(
            "websocket", "problem", f"no answer to the upgrade: {error!r}", _let_it_pass(url)
        )
    finally:
        connection.close()
    if status in _UPGRADED:
        return Finding("websocket", "ok", "the server takes the upgrade")
    return Finding(
        "websocket", "problem", f"the upgrade is answered with HTTP {status}", _let_it_pass(url)
    )


def _let_it_pass(url: str) -> str:
    return f"let what is in front of the server pass Upgrade and Connection at {urlsplit(url).path}"
