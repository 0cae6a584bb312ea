"""A headless Chromium, driven over the DevTools protocol.

It opens pages, reads and clicks elements, and takes pictures.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import pytest
from websockets.sync.client import ClientConnection, connect

from tests.support.people.frames import message_of
from tests.support.processes import descendants_of, is_running, send_signal
from tests.support.waiting import ConditionNotMetError, wait_until

_START_SECONDS = 120.0
_PAGE_SECONDS = 120.0
_CHANGE_SECONDS = 120.0
_BINARY = 2
# What Chromium answers for a page that is replaced just then.
_GONE = (
    "Inspected target navigated or closed",
    "Execution context was destroyed",
    "Cannot find default execution context",
    "Cannot find context with specified id",
)
_CODES = {"Enter": 13, "Escape": 27}
_QUIET = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ),
    *(
        "--disable-component-update",
        "--disable-sync",
        "--disable-dev-shm-usage",
        "--window-size=1280,1000",
    ),
)


def chromium() -> str:
    """The path of Chromium. Skips the test if Chromium is not installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    pytest.skip("Chromium is not installed")


class PageGoneError(AssertionError):
    """The page was replaced by another one while the browser worked for it."""


class Page:
    """One tab of the browser.

    ``errors`` are those of its console, such as a script that the page's policy refused.
    """

    def __init__(self, connection: ClientConnection, port: int = 0) -> None:
        self._connection = connection
        self._port = port
        self._last_id = 0
        self.errors: list[str] = []
        self.frames: list[dict[str, Any]] = []
        """The messages that the sockets of the page were sent, after ``hear_sockets``."""
        for domain in ("Page", "Runtime", "Log"):
            self._call(f"{domain}.enable")

    def open(self, url: str) -> None:
        """Open an address, and return when its page has loaded."""
        self.seen("window.holdlineOld = true; null")
        begun = self._call("Page.navigate", url=url)
        # The page before may still answer. Another place of the same page has no loader.
        if "loaderId" in begun and "errorText" not in begun:
            self._wait_replaced(f"opening {url}")
        self._wait_loaded()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def seen(self, expression: str) -> Any:
        """``evaluate`` for what changes nothing: if the page goes away, the next one answers."""

        def answers() -> list[Any]:
            with suppress(PageGoneError):
                return [self.evaluate(expression)]
            return []

        return wait_until(answers, _PAGE_SECONDS, "a page that answers")[0]

    def awaited(self, promise: str) -> Any:
        """The value that a promise of the page is fulfilled with."""
        answer = self._call(
            "Runtime.evaluate", expression=promise, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def look_like(self, *, width: int, scheme: Literal["dark", "light"]) -> None:
        """Show pages at this width, to a person who prefers this colour scheme."""
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=800 if width > 600 else 844,
            deviceScaleFactor=1,
            mobile=False,
        )
        preference = {"name": "prefers-color-scheme", "value": scheme}
        self._call("Emulation.setEmulatedMedia", features=[preference])

    def press(self, key: str) -> None:
        """Press and release a key. A single character is typed as text."""
        text = {"text": "\r" if key == "Enter" else key} if key == "Enter" or len(key) == 1 else {}
        # Some keys are known by their code alone: a link is followed on Enter only with it.
        code = {"windowsVirtualKeyCode": _CODES[key]} if key in _CODES else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", key=key, **text, **code)
        self._call("Input.dispatchKeyEvent", type="keyUp", key=key, **code)

    def text(self, selector: str = "body") -> str:
        """The visible text of the first element that matches; empty if none does."""
        return str(self.seen(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''"))

    def fill(self, selector: str, value: str) -> None:
        """Put a value into a field."""
        self.evaluate(f"document.querySelector({json.dumps(selector)}).value = {json.dumps(value)}")

    def click(self, selector: str) -> None:
        """Click something that leads to another page, and wait for that page."""
        self.evaluate(
            f"window.holdlineOld = true; document.querySelector({json.dumps(selector)}).click()"
        )
        self._wait_replaced(f"a click on {selector}")
        self._wait_loaded()

    def click_at(self, left: int, top: int) -> None:
        """Press and release the mouse at a place of the window."""
        place = {"x": left, "y": top, "button": "left", "clickCount": 1}
        for event in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=event, **place)

    def screenshot(self, path: Path) -> None:
        """Save a picture: of the whole page as PNG, or of the window as WebP."""
        is_whole = path.suffix == ".png"
        picture = self._call(
            "Page.captureScreenshot", format=path.suffix[1:], captureBeyondViewport=is_whole
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(picture["data"]))

    def keep_picture(self, name: str) -> None:
        """Save a screenshot in the directory HOLDLINE_PICTURES, if that is set.

        The pictures are for people to look at.
        """
        if folder := os.environ.get("HOLDLINE_PICTURES"):
            self.screenshot(Path(folder) / f"{name}.png")

    def await_text(self, expected: str, selector: str = "body") -> None:
        """Return when the text is visible, without loading another page."""
        try:
            wait_until(
                lambda: expected in self.text(selector),
                _CHANGE_SECONDS,
                f"{expected!r} on the page",
            )
        except ConditionNotMetError as error:
            raise ConditionNotMetError(error.what, error.seconds, self.text(selector)) from None

    @contextmanager
    def beside(self) -> Iterator["Page"]:
        """Another tab of the same person."""
        with _tab(self._port) as tab:
            yield tab

    def front(self) -> None:
        """Bring the tab to the front: nothing is drawn in the tabs behind it."""
        self._call("Page.bringToFront")

    def hear_sockets(self) -> None:
        """Keep the messages that sockets of the page are sent from now on."""
        self._call("Network.enable")

    def type_keys(self, text: str) -> None:
        """Press one key after the other in what has the focus. A line feed is Enter."""
        for char in text:
            enter = {"text": "\r", "key": "Enter", "windowsVirtualKeyCode": 13}
            key = enter if char == "\n" else {"text": char, "key": char}
            self._call("Input.dispatchKeyEvent", type="keyDown", **key)
            key.pop("text")
            self._call("Input.dispatchKeyEvent", type="keyUp", **key)

    def _wait_replaced(self, after: str) -> None:
        is_new = "window.holdlineOld !== true"
        wait_until(lambda: self.seen(is_new), _PAGE_SECONDS, f"a new page after {after}")

    def _wait_loaded(self) -> None:
        is_loaded = "document.readyState === 'complete' && location.href !== 'about:blank'"
        wait_until(lambda: self.seen(is_loaded), _PAGE_SECONDS, "the page to load")

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._last_id += 1
        self._connection.send(
            json.dumps({"id": self._last_id, "method": method, "params": parameters})
        )
        while True:
            message = json.loads(self._connection.recv(_PAGE_SECONDS))
            if message.get("id") == self._last_id:
                if any(each in message.get("error", {}).get("message", "") for each in _GONE):
                    raise PageGoneError(message)
                assert "error" not in message, message
                return dict(message["result"])
            if (
                message.get("method") == "Log.entryAdded"
                and message["params"]["entry"]["level"] == "error"
            ):
                self.errors.append(message["params"]["entry"]["text"])
            if message.get("method") == "Network.webSocketFrameReceived":
                self.frames.append(_message_in(message["params"]["response"]))
            if message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(message["params"]["exceptionDetails"]["text"])


def _message_in(frame: dict[str, Any]) -> dict[str, Any]:
    """The message in a frame as the DevTools tell of it: bytes are in base64."""
    text = frame["payloadData"]
    return message_of(base64.b64decode(text) if frame["opcode"] == _BINARY else text)


@contextmanager
def browser() -> Iterator[Page]:
    """A browser with an empty profile and one tab."""
    profile = Path(tempfile.mkdtemp(prefix="holdline-browser-"))
    command = [
        chromium(),
        *_QUIET,
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    # Fontconfig and dconf write into HOME; the profile goes away afterwards.
    environment = {
        **os.environ,
        "HOME": str(profile),
        "XDG_CONFIG_HOME": str(profile),
        "XDG_CACHE_HOME": str(profile),
    }
    log = profile / "browser.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment
        )
    try:
        endpoint = profile / "DevToolsActivePort"
        wait_until(
            lambda: (
                process.poll() is not None
                or (endpoint.exists() and len(endpoint.read_text().splitlines()) == 2)
            ),
            _START_SECONDS,
            "Chromium to listen",
        )
        assert process.poll() is None, log.read_text(errors="replace")
        port = int(endpoint.read_text().splitlines()[0])
        with connect(
            _first_tab(port), max_size=None, compression=None, ping_interval=None
        ) as connection:
            yield Page(connection, port)
    finally:
        _end(process)
        shutil.rmtree(profile, ignore_errors=True)


@contextmanager
def _tab(port: int) -> Iterator[Page]:
    """A new tab of the browser that listens at ``port``."""
    from urllib.request import Request, urlopen

    made = Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
    with urlopen(made, timeout=_PAGE_SECONDS) as answer:
        address = json.load(answer)["webSocketDebuggerUrl"]
    with connect(address, max_size=None, compression=None, ping_interval=None) as connection:
        yield Page(connection, port)


def _first_tab(port: int) -> str:
    from urllib.request import urlopen

    def tabs() -> list[dict[str, str]]:
        with urlopen(f"http://127.0.0.1:{port}/json/list", timeout=_PAGE_SECONDS) as answer:
            return [tab for tab in json.load(answer) if tab["type"] == "page"]

    return wait_until(tabs, _START_SECONDS, "a tab")[0]["webSocketDebuggerUrl"]


def _end(process: subprocess.Popen[bytes]) -> None:
    helpers = descendants_of(process.pid)
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(10)
    for pid in helpers:
        if is_running(pid):
            send_signal(pid, signal.SIGKILL)
    wait_until(lambda: not any(is_running(pid) for pid in helpers), 90, "Chromium's helpers to end")
