"""A page of another origin calls ``/mcp`` from a real browser. Only allowed origins can."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from tests.support.browser import Page, browser
from tests.support.mcp.requests import modern
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

_CALL = """
window.outcome = null;
fetch(%s, {method: "POST", headers: %s, body: %s})
  .then(async answer => ({
    status: answer.status,
    challenge: answer.headers.get("WWW-Authenticate"),
    text: await answer.text(),
  }))
  .catch(error => ({refused: String(error)}))
  .then(outcome => { window.outcome = JSON.stringify(outcome) })
"""


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_args: Any) -> None:
        """Prints no line for a request."""


@contextmanager
def _site(folder: Path) -> Iterator[int]:
    """A web site of somebody else's; its port. It has two origins: 127.0.0.1 and localhost."""
    (folder / "index.html").write_text(
        "<!doctype html><title>tools</title><link rel=icon href=data:,>"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder))) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            serving.join()


@contextmanager
def _allowing(origin: str) -> Iterator[Stack]:
    with running_stack(server_environment={"HOLDLINE_ALLOWED_ORIGINS": origin}) as stack:
        yield stack


def _fetched(page: Page, url: str, token: str) -> dict[str, Any]:
    """The answer to a call, as far as a script of the page can read it."""
    body, headers = modern("list_controllers")
    accepts = {
        "Accept": "application/json, text/event-stream",
        "Content-Type": "application/json",
        "Mcp-Session-Id": "none",
    }
    page.evaluate(
        _CALL
        % tuple(
            json.dumps(each)
            for each in (url, {**headers, **accepts, "Authorization": token}, json.dumps(body))
        )
    )
    outcome = wait_until(lambda: page.evaluate("window.outcome"), 90, "an answer")
    return dict(json.loads(outcome))


def test_only_pages_of_an_allowed_origin_can_call_and_read_the_answer(tmp_path: Path) -> None:
    with _site(tmp_path) as port, _allowing(f"http://127.0.0.1:{port}") as stack, browser() as page:
        page.open(f"http://127.0.0.1:{port}/")
        served = _fetched(page, stack.url, f"Bearer {stack.provisioned.token}")
        assert served["status"] == 200
        assert '"controllers"' in served["text"]
        refused = _fetched(page, stack.url, "Bearer wrong")
        assert (refused["status"], "UNAUTHENTICATED" in refused["text"]) == (401, True)
        assert refused["challenge"].startswith("Bearer ")

        page.open(f"http://localhost:{port}/")
        assert (
            "Failed to fetch"
            in _fetched(page, stack.url, f"Bearer {stack.provisioned.token}")["refused"]
        )
