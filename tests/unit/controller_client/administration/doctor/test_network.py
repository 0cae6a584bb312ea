"""The doctor finds what is wrong on the way to a server, in set-ups that are really broken."""

import datetime as dt
import threading
from pathlib import Path
from socket import create_server

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from controller_client.administration.doctor import network
from controller_client.administration.doctor.finding import Finding
from controller_client.administration.doctor.network import examine_network
from controller_client.config.server_address import DIRECT, Way
from tests.unit.controller_client.administration.doctor.servers import Well, serving


def _certificate(directory: Path, *, name: str = "localhost", days: int = 2) -> Path:
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=9))
        .not_valid_after(now + dt.timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / f"{name}-{days}.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


def _levels(found: list[Finding]) -> dict[str, str]:
    return {finding.check: finding.level for finding in found}


def _last(url: str, way: Way = DIRECT) -> Finding:
    return list(examine_network(url, way))[-1]


def test_a_server_that_is_well_has_no_finding_with_a_remedy(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path)
    with serving(certificate) as port:
        found = list(examine_network(f"wss://localhost:{port}/ws/controller/", Way(certificate)))
    assert _levels(found) == dict.fromkeys(
        ("dns", "server", "tls", "health", "clock", "websocket"), "ok"
    )
    assert [finding.remedy for finding in found] == [""] * len(found)


def test_a_name_without_an_address_is_found() -> None:
    found = _last("wss://holdline.invalid/")
    assert (found.check, found.level) == ("dns", "problem")
    assert "holdline.invalid has no address" in found.text


def test_a_port_on_which_nobody_listens_is_found() -> None:
    with create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    found = _last(f"wss://127.0.0.1:{port}/")
    assert (found.check, found.level) == ("server", "problem")
    assert "start the server" in found.remedy


def test_a_port_that_does_not_speak_tls_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "PATIENCE_SECONDS", 0.2)
    with create_server(("127.0.0.1", 0)) as silent:
        found = _last(f"wss://127.0.0.1:{silent.getsockname()[1]}/")
    assert (found.check, found.level) == ("tls", "problem")
    assert "does this port speak TLS?" in found.remedy
    with serving() as port:
        assert "does this port speak TLS?" in _last(f"wss://127.0.0.1:{port}/").remedy


@pytest.mark.parametrize(
    ("days", "name", "is_trusted", "remedy"),
    [
        (2, "localhost", False, "--ca-file"),
        (-1, "localhost", True, "new certificate"),
        (2, "elsewhere.example", True, "the name in the certificate"),
    ],
)
def test_each_fault_of_a_certificate_has_its_remedy(
    tmp_path: Path, days: int, name: str, is_trusted: bool, remedy: str
) -> None:
    certificate = _certificate(tmp_path, name=name, days=days)
    with serving(certificate) as port:
        found = _last(f"wss://localhost:{port}/", Way(certificate if is_trusted else None))
    assert (found.check, found.level) == ("tls", "problem")
    assert remedy in found.remedy


def test_a_file_without_certificates_is_found(tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")
    with serving(_certificate(tmp_path)) as port:
        found = _last(f"wss://localhost:{port}/", Way(empty))
    assert (found.check, found.level) == ("ca_file", "problem")


def test_a_proxy_that_speaks_no_http_is_found() -> None:
    def speak() -> None:
        taken, _ = listener.accept()
        taken.close()
        taken, _ = listener.accept()
        with taken:
            taken.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")

    with create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=speak)
        thread.start()
        proxy = f"http://127.0.0.1:{listener.getsockname()[1]}"
        found = _last("wss://localhost:9/", Way(None, proxy))
        thread.join()
    assert (found.check, found.level) == ("proxy", "problem")


def test_a_proxy_that_does_not_let_pass_is_found(tmp_path: Path) -> None:
    certificate = _certificate(tmp_path)
    with serving() as proxy, serving(certificate) as port:
        found = _last(f"wss://localhost:{port}/", Way(certificate, f"http://127.0.0.1:{proxy}"))
    assert (found.check, found.level) == ("proxy", "problem")
    assert "allow CONNECT" in found.remedy


@pytest.mark.parametrize(
    ("changed", "check", "level", "remedy"),
    [
        ({"health": 404}, "health", "problem", "is this a Holdline server?"),
        ({"off_seconds": 3600}, "clock", "warning", "set the clock"),
        ({"off_seconds": -3600}, "clock", "warning", "set the clock"),
        ({"upgrade": 400}, "websocket", "problem", "Upgrade and Connection at /ws/controller/"),
    ],
)
def test_what_a_server_answers_is_judged(
    changed: dict[str, float], check: str, level: str, remedy: str
) -> None:
    with serving(handler=type("_Ill", (Well,), changed)) as port:
        found = examine_network(f"ws://127.0.0.1:{port}/ws/controller/", DIRECT)
        (judged,) = (finding for finding in found if finding.check == check)
    assert judged.level == level
    assert remedy in judged.remedy
