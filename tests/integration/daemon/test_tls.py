"""The daemon and the enrolment trust a server by its certificate only."""

import asyncio
import http.server
import socket
import ssl
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
from websockets.asyncio.server import ServerConnection, serve

from controller_client.config.errors import ConfigurationError
from controller_client.config.server_address import Way
from controller_client.server_link import enrolment
from controller_client.server_link.enrolment import enrol
from controller_client.server_link.errors import EnrolmentFailed, ServerUnreachable
from controller_client.server_link.network.connection import open_connection
from tests.support.hosts.daemon_process import daemon_process
from tests.support.waiting import await_until

CREDENTIAL = "ctl_0123456789abcdef_" + "s" * 43


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate for localhost that nobody but the test trusts, with its key in one file."""
    path = tmp_path_factory.mktemp("tls") / "localhost.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-days",
        "2",
        *names,
        "-keyout",
        str(path),
        "-out",
        f"{path}.crt",
    ]
    subprocess.run(command, check=True, capture_output=True)
    path.write_text(path.read_text() + Path(f"{path}.crt").read_text())
    return path


def _context(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


async def _hang_up(connection: ServerConnection) -> None:
    await connection.wait_closed()


async def test_a_connection_needs_a_trusted_certificate_that_names_the_host(
    certificate: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serve(_hang_up, "127.0.0.1", 0, ssl=_context(certificate)) as server:
        port = next(iter(server.sockets)).getsockname()[1]
        with pytest.raises(ServerUnreachable, match="certificate verify failed"):
            await open_connection(f"wss://localhost:{port}/", CREDENTIAL)
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        connection = await open_connection(f"wss://localhost:{port}/", CREDENTIAL)
        await connection.close()
        with pytest.raises(ServerUnreachable, match="certificate verify failed"):
            await open_connection(f"wss://127.0.0.1:{port}/", CREDENTIAL)


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def _proxy() -> AsyncIterator[tuple[int, list[str]]]:
    """A proxy that takes CONNECT; yields its port, and the heads of the requests it was sent."""
    heads: list[str] = []

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heads.append(head)
        host, port = head.split()[1].rsplit(":", 1)
        there_reader, there_writer = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        await asyncio.gather(_carry(reader, there_writer), _carry(there_reader, writer))

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], heads
    finally:
        server.close()


async def test_a_connection_goes_through_the_named_proxy(
    certificate: Path,
) -> None:
    async with (
        serve(_hang_up, "127.0.0.1", 0, ssl=_context(certificate)) as server,
        _proxy() as (proxy_port, heads),
    ):
        port = next(iter(server.sockets)).getsockname()[1]
        way = Way(Path(f"{certificate}.crt"), f"http://who:what@127.0.0.1:{proxy_port}")
        connection = await open_connection(f"wss://localhost:{port}/", CREDENTIAL, way)
        await connection.close()
    assert heads[0].startswith(f"CONNECT localhost:{port} ")
    assert "Proxy-Authorization: Basic d2hvOndoYXQ=" in heads[0]


async def test_an_enrolment_goes_through_the_named_proxy(certificate: Path, tmp_path: Path) -> None:
    with _web_server(certificate) as port:
        async with _proxy() as (proxy_port, heads):
            way = Way(Path(f"{certificate}.crt"), f"http://who:what@127.0.0.1:{proxy_port}")
            enrolled = await asyncio.to_thread(
                enrol,
                server=f"https://localhost:{port}",
                code="enr_x",
                credential_file=tmp_path / "credential",
                is_replacing=False,
                way=way,
            )
    assert enrolled == ("p/c", False)
    assert heads[0].startswith(f"CONNECT localhost:{port} ")
    assert "Proxy-Authorization: Basic d2hvOndoYXQ=" in heads[0]


class _Answer(http.server.BaseHTTPRequestHandler):
    """A server that enrols everybody, or sends them elsewhere."""

    is_elsewhere = False

    def do_POST(self) -> None:
        body = f'{{"project": "p", "controller": "c", "credential": "{CREDENTIAL}"}}'.encode()
        self.send_response(302 if self.is_elsewhere else 200)
        self.send_header("Location", "https://elsewhere.example/")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def _web_server(certificate: Path, answer: type[_Answer] = _Answer) -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), answer) as server:
        server.socket = _context(certificate).wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_enrolment_needs_a_trusted_server_and_follows_no_redirect(
    certificate: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "credential"
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    with _web_server(certificate) as port:
        for server in (f"wss://localhost:{port}/ws/controller/", f"https://localhost:{port}"):
            with pytest.raises(EnrolmentFailed, match="certificate verify failed"):
                enrol(server=server, code="enr_x", credential_file=file, is_replacing=False)
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setenv("SSL_CERT_FILE", f"{certificate}.crt")
        assert enrol(
            server=f"https://localhost:{port}",
            code="enr_x",
            credential_file=file,
            is_replacing=False,
        ) == ("p/c", False)
    assert (file.read_text(), file.stat().st_mode & 0o777) == (CREDENTIAL + "\n", 0o600)
    with (
        _web_server(certificate, type("_Elsewhere", (_Answer,), {"is_elsewhere": True})) as port,
        pytest.raises(EnrolmentFailed, match="302"),
    ):
        enrol(
            server=f"https://localhost:{port}",
            code="enr_x",
            credential_file=file,
            is_replacing=True,
        )


@pytest.mark.parametrize(
    "server",
    [
        "http://192.0.2.1/",
        "ws://192.0.2.1/",
        "https://user:pw@localhost/",
        "ftp://localhost/",
        "localhost",
    ],
)
def test_an_enrolment_code_is_sent_over_tls_or_loopback_only(server: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        enrol(
            server=server, code="enr_x", credential_file=tmp_path / "credential", is_replacing=False
        )


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A server that takes connections and says nothing, as one that does not speak TLS does."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener.getsockname()[1]


def test_enrolling_at_a_silent_port_asks_whether_it_speaks_tls(
    silent_port: int, tmp_path: Path
) -> None:
    url = f"wss://127.0.0.1:{silent_port}/ws/controller/"
    with pytest.raises(EnrolmentFailed, match="Does this port speak TLS"):
        enrol(server=url, code="enr_x", credential_file=tmp_path / "credential", is_replacing=False)


def test_enrolling_without_tls_at_a_silent_port_asks_what_it_is(
    silent_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(enrolment, "ANSWER_SECONDS", 0.5)
    url = f"ws://127.0.0.1:{silent_port}/ws/controller/"
    with pytest.raises(EnrolmentFailed, match="Is this the port of a Holdline server"):
        enrol(server=url, code="enr_x", credential_file=tmp_path / "credential", is_replacing=False)


async def test_a_daemon_at_a_silent_port_asks_whether_it_speaks_tls(
    silent_port: int, tmp_path: Path
) -> None:
    async with daemon_process(tmp_path, f"wss://127.0.0.1:{silent_port}/ws/controller/") as daemon:
        await await_until(
            lambda: "Does this port speak TLS?" in daemon.log, 60, "the question in the log"
        )
