"""HAProxy, set up by ``deploy/haproxy.cfg``, before a server with the settings of production."""

import os
import re
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import ClassVar, cast

import httpx2
import pytest
from cryptography.fernet import Fernet
from websockets.sync.client import connect

from mcp_bridge.patient_client import PatientClient
from tests.support.accounts import requires
from tests.support.management import manage_well
from tests.support.ports import free_port
from tests.support.stack import PROJECT_ROOT, Stack
from tests.support.waiting import wait_until

_SECONDS = 60.0
_PER_MINUTE = 2
_MAKE_USERS = """
from django.contrib.auth.models import User
for name in ("ada", "bob"):
    User.objects.create_superuser(name, password="right")
"""


@dataclass(frozen=True)
class Site:
    """A server behind the proxy, and the authority that its clients trust."""

    stack: Stack
    origin: str
    authority: Path

    def browser(self, address: str = "127.0.0.1") -> httpx2.Client:
        """A browser of its own, on a machine of that address."""
        transport = httpx2.HTTPTransport(verify=self.trust(), local_address=address)
        return httpx2.Client(base_url=self.origin, transport=transport, timeout=_SECONDS)

    def trust(self) -> ssl.SSLContext:
        """What a client needs to believe the proxy."""
        return ssl.create_default_context(cafile=str(self.authority))

    def status(self) -> int:
        """The status of the probe behind the proxy; 0 without an answer."""
        with suppress(httpx2.TransportError), self.browser() as browser:
            return browser.get("/readyz").status_code
        return 0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    requires("haproxy", "openssl")
    directory, port = tmp_path_factory.mktemp("proxy"), free_port()
    maker = PROJECT_ROOT / "deploy/make-certificate"
    subprocess.run([maker, directory, "localhost"], check=True)
    origin = f"https://localhost:{port}"
    stack = Stack(server_environment=_production(origin))
    try:
        manage_well(stack, "shell", "-c", _MAKE_USERS)
        stack.start_server()
        with _haproxy(directory, port, stack.port):
            made = Site(stack, origin, directory / "ca.pem")
            wait_until(lambda: made.status() == 200, _SECONDS, "HAProxy to find the server")
            yield made
    finally:
        stack.stop()


def _production(origin: str) -> dict[str, str]:
    """The environment that the guide writes, on SQLite."""
    return {
        "DJANGO_SETTINGS_MODULE": "config.settings.production",
        "HOLDLINE_SECRET_KEY": Fernet.generate_key().decode() * 2,
        "HOLDLINE_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
        "HOLDLINE_ALLOWED_HOSTS": "localhost",
        "HOLDLINE_PUBLIC_URL": origin,
        "HOLDLINE_PROXY_COUNT": "1",
        "HOLDLINE_LOGIN_FAILURES_PER_MINUTE": str(_PER_MINUTE),
    }


@contextmanager
def _haproxy(directory: Path, port: int, server_port: int) -> Iterator[None]:
    variables = {
        "HOLDLINE_BIND": f"127.0.0.1:{port}",
        "HOLDLINE_CERTIFICATE": str(directory / "holdline.pem"),
        "HOLDLINE_SERVER_1": f"127.0.0.1:{server_port}",
        "HOLDLINE_SERVER_2": f"127.0.0.1:{free_port()}",
    }
    path = f"{os.environ['PATH']}:/usr/sbin"
    command = ["haproxy", "-db", "-f", str(PROJECT_ROOT / "deploy/haproxy.cfg")]
    with (directory / "log").open("wb") as log:
        proxy = subprocess.Popen(command, env={"PATH": path, **variables}, stdout=log, stderr=log)
    try:
        yield
    finally:
        proxy.terminate()
        proxy.wait(_SECONDS)


class _Busy(BaseHTTPRequestHandler):
    """A server that answers all but its probe with 503, and counts."""

    counted: ClassVar[Counter[str]] = Counter()

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/readyz" else 503)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(503)

    def _answer(self, status: int) -> None:
        self.counted[f"{self.command} {self.path}"] += 1
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


def _log_in(browser: httpx2.Client, name: str, password: str, **headers: str) -> httpx2.Response:
    page = browser.get("/login/")
    (token,) = re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', page.text)
    form = {"username": name, "password": password, "csrfmiddlewaretoken": token}
    return browser.post("/login/", data=form, headers={"Referer": str(page.url), **headers})


def test_a_person_logs_in_with_cookies_for_https_alone(site: Site) -> None:
    with site.browser() as browser:
        assert _log_in(browser, "ada", "right", Origin="https://other.example").status_code == 403
        answer = _log_in(browser, "ada", "right", Origin=site.origin)
        assert answer.status_code == 302
        cookies = answer.headers.get_list("set-cookie")
        assert {cookie.partition("=")[0] for cookie in cookies} >= {"sessionid", "csrftoken"}
        assert all("; Secure" in cookie for cookie in cookies)
        assert browser.get("/").status_code == 200


def test_guesses_count_for_the_address_that_made_them(site: Site) -> None:
    with site.browser("127.0.0.2") as guesser, site.browser("127.0.0.3") as other:
        forged = [{"X-Forwarded-For": f"127.0.0.3, 203.0.113.{number}"} for number in range(4)]
        answers = [_log_in(guesser, "bob", "wrong", **one).status_code for one in forged]
        assert answers[:_PER_MINUTE] == [200] * _PER_MINUTE
        assert 429 in answers
        assert _log_in(other, "bob", "right").status_code == 302


def test_a_host_connects_by_wss(site: Site) -> None:
    headers = {"Authorization": f"Bearer {site.stack.provisioned.credential}"}
    address = site.origin.replace("https", "wss") + "/ws/controller/"
    with connect(address, ssl=site.trust(), additional_headers=headers) as socket:
        assert socket.response is not None
        assert socket.response.status_code == 101


def test_what_may_be_half_done_is_not_repeated(tmp_path: Path) -> None:
    requires("haproxy", "openssl")
    subprocess.run([PROJECT_ROOT / "deploy/make-certificate", tmp_path, "localhost"], check=True)
    trust = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
    port = free_port()
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), _Busy) as server,
        _haproxy(tmp_path, port, server.server_port),
        httpx2.Client(
            base_url=f"https://localhost:{port}", verify=trust, timeout=_SECONDS
        ) as client,
    ):
        (serving := Thread(target=server.serve_forever, args=(0.05,))).start()
        try:
            site = Site(cast("Stack", None), f"https://localhost:{port}", tmp_path / "ca.pem")
            wait_until(lambda: site.status() == 200, _SECONDS, "HAProxy to find the server")
            for path in ("/controllers/enrol", "/login/", "/mcp"):
                assert client.post(path, content=b"{}").status_code == 503
            assert client.get("/sessions/").status_code == 503
        finally:
            server.shutdown()
            serving.join()
    for once in ("POST /controllers/enrol", "POST /login/"):
        assert _Busy.counted[once] == 1
    for again in ("POST /mcp", "GET /sessions/"):
        assert _Busy.counted[again] > 1


async def test_the_bridge_says_what_the_page_of_the_proxy_means(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(site.authority))
    site.stack.kill_server()
    try:
        wait_until(lambda: site.status() == 503, _SECONDS, "HAProxy to miss the server")
        async with PatientClient("hl_x") as bridge:
            answer = await bridge.post(f"{site.origin}/mcp", json={})
        assert answer.json()["error"]["message"].startswith("503 Service Unavailable")
    finally:
        site.stack.start_server()
        wait_until(lambda: site.status() == 200, _SECONDS, "HAProxy to find the server again")
