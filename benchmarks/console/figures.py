"""What the console costs, and how fast it is: ``python -m benchmarks.console.figures``.

The figures are taken in a headless Chromium beside a caller that takes turns. ``--real-time LOCK``
raises the priority of everything that is measured for as long as that takes, on a machine that
others use; LOCK is a file that only one such measurement holds.
"""

import argparse
import asyncio
import fcntl
import json
import os
import statistics
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Self

from benchmarks.console.stage import HOST, Fleet, fleet
from benchmarks.harness import in_ms, machine
from tests.support.browser import Page
from tests.support.mcp.light_client import LightCaller
from tests.support.processes import (
    command_line,
    cpu_seconds,
    descendants_of,
    proportional_bytes,
)
from tests.support.waiting import wait_until

_ASKS = "bash -c 'while read -p \"> \" x; do echo got $x; done'"
_TEN_A_SECOND = (
    "perl -e '$|=1; while (1) "
    '{ print ++$n, " a line of its log\n"; select(undef,undef,undef,0.1) }\''
)
_FLOOD = (
    'perl -e \'$l = ("x" x 99 . "\n") x 500; while (1) '
    "{ syswrite STDOUT, $l; select(undef,undef,undef,0.01) }'"
)
# From the press of a key to the moment at which its glyph is in the frame that is drawn next.
_WATCH_GLYPHS = """
window.glyphs = []; window.pressed = 0;
addEventListener("keydown", (event) => { window.pressed = event.timeStamp; }, true);
new MutationObserver(() => {
  const count = document.querySelector(".xterm-rows").textContent.split("x").length;
  if (count !== window.count && window.pressed) {
    window.glyphs.push(performance.now() - window.pressed); window.pressed = 0; }
  window.count = count;
}).observe(document.querySelector(".xterm-rows"),
  {subtree: true, childList: true, characterData: true});
"""
_WATCH_CLICKS = """
window.clicks = [];
addEventListener("pointerdown", (event) => requestAnimationFrame(() => setTimeout(() =>
  window.clicks.push(performance.now() - event.timeStamp))), true);
"""


_WATCH_BOARD = """
window.changes = []; new MutationObserver(() => changes.push(performance.now()))
  .observe(document.querySelector("[data-group=works]"),
    {subtree: true, childList: true, characterData: true});
"""
_SIZE_OF_FILES = """
performance.getEntriesByType("resource").reduce((sum, one) => sum + one.encodedBodySize, 0)
"""
# A browser that is idle shows this page; about:blank is what a tab shows before it has loaded.
_EMPTY_PAGE: Final = "data:text/html,nothing"
_pause: Final = threading.Event().wait


class Turns(threading.Thread):
    """A caller that takes turns beside a measurement; ``seconds`` is how long each took."""

    def __init__(self, stage: Fleet, pause_seconds: float = 0.05) -> None:
        super().__init__(daemon=True)
        self._stage, self._pause = stage, pause_seconds
        self._is_over = threading.Event()
        self.seconds: list[float] = []

    def run(self) -> None:
        asyncio.run(self._turn())

    async def _turn(self) -> None:
        caller = _caller(self._stage)
        started = await caller.call("start_interactive_command", command=_ASKS, controller=HOST)
        while not self._is_over.is_set():
            began = time.perf_counter()
            typed = {"session_id": started["session_id"], "input_text": "ada\n"}
            await caller.call("send_command_input", **typed)
            self.seconds.append(time.perf_counter() - began)
            await asyncio.sleep(self._pause)

    def __enter__(self) -> Self:
        self.start()
        wait_until(lambda: len(self.seconds) > 2, 60, "the first turns")
        self.seconds.clear()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self.join()


def _caller(stage: Fleet) -> LightCaller:
    return LightCaller("127.0.0.1", stage.stack.port, stage.stack.provisioned.token)


def _start(stage: Fleet, *commands: str) -> list[str]:
    async def start() -> list[str]:
        caller = _caller(stage)
        return [
            str(
                (
                    await caller.call(
                        "start_interactive_command", command=each, controller=HOST, wait_seconds=0
                    )
                )["session_id"]
            )
            for each in commands
        ]

    return asyncio.run(start())


def _end(stage: Fleet, sessions: list[str]) -> None:
    async def end() -> None:
        caller = _caller(stage)
        for each in sessions:
            await caller.call("send_command_input", session_id=each, terminate=True)

    asyncio.run(end())


def _session_page(stage: Fleet, page: Page, session_id: str, shows: str) -> None:
    page.open(f"{stage.address}/sessions/{session_id}/")
    page.await_text("Take over", ".hands")
    wait_until(lambda: shows in page.text(".xterm-rows"), 60, f"{shows!r} on the screen")


def keys(stage: Fleet, page: Page, quiet: Callable[[], Any], count: int) -> None:
    """From the press of a key to its glyph, in a shell, beside turns."""
    (session,) = _start(stage, "bash --norc")
    _session_page(stage, page, session, "#")
    page.evaluate("document.querySelector('#take').click()")
    page.await_text("You have the keyboard", "#who")
    page.evaluate(_WATCH_GLYPHS)
    with Turns(stage) as turns, quiet():
        for number in range(count):
            page.type_keys("x")
            wait_until(
                lambda wanted=number + 1: page.evaluate("glyphs.length") >= wanted, 10, "a glyph"
            )
        seconds = [each / 1000 for each in page.evaluate("glyphs")]
    print(in_ms("key to glyph", seconds, "p50 30, p99 100"))
    print(in_ms("  turns beside it", turns.seconds))
    _end(stage, [session])


def flood(stage: Fleet, page: Page, quiet: Callable[[], Any], seconds: float) -> None:
    """One watcher of a session that prints 5 MB a second: clicks, and memory."""
    (session,) = _start(stage, _FLOOD)
    _session_page(stage, page, session, "xxxx")
    page.evaluate(_WATCH_CLICKS)
    with quiet():
        ends = time.monotonic() + seconds
        idle = peak = _renderer_mib()
        while time.monotonic() < ends:
            page.click_at(900, 20)
            peak = max(peak, _renderer_mib())
            _pause(0.1)
        clicks = [each / 1000 for each in page.evaluate("clicks")]
    heap = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
    print(in_ms("click beside 5 MB/s", clicks, "200"))
    print(
        f"  {heap:.0f} MiB of JavaScript's heap; its process {idle:.0f} MiB at first, at most "
        f"{peak:.0f} MiB   target 150"
    )
    _end(stage, [session])


def _renderer_mib() -> float:
    mine = descendants_of(os.getpid())
    found = [proportional_bytes(pid) for pid in mine if "--type=renderer" in command_line(pid)]
    return max(found) / 2**20


def board(stage: Fleet, page: Page, quiet: Callable[[], Any], seconds: float, rounds: int) -> None:
    """100 sessions that print 10 lines a second: what a look at the board costs."""
    sessions = _start(stage, *[_TEN_A_SECOND] * 100)
    assert stage.stack.server is not None
    pid = stage.stack.server.pid
    shares: dict[str, list[float]] = {"": [], "/": []}
    turns_of: dict[str, list[float]] = {"": [], "/": []}
    for _ in range(rounds):
        for path, used in shares.items():
            page.open(f"{stage.address}{path}" if path else _EMPTY_PAGE)
            with Turns(stage) as turns, quiet():
                before, began = cpu_seconds(pid), time.monotonic()
                _pause(seconds)
                used.append((cpu_seconds(pid) - before) / (time.monotonic() - began))
            turns_of[path] += turns.seconds
    off, on = (100 * statistics.mean(shares[path]) for path in ("", "/"))
    print(
        f"board, 100 x 10 lines/s         server {off:.0f} % of a core, with the board {on:.0f} %:"
        f" {on - off:+.1f}   target +15"
    )
    for name, path in (("turn, no browser", ""), ("turn, board open", "/")):
        print(in_ms(f"  {name}", turns_of[path]))
    page.open(f"{stage.address}/")
    page.await_text("a line of its log", "main")
    page.evaluate(_WATCH_BOARD)
    _pause(6)
    moments = page.evaluate("changes")
    gaps = [(after - before) / 1000 for before, after in pairwise(moments) if after - before > 50]
    print(in_ms("  between updates", gaps, "1000"))
    _end(stage, sessions)


def browsers(
    stage: Fleet, page: Page, quiet: Callable[[], Any], seconds: float, rounds: int
) -> None:
    """A turn's cost with no browser, and with ten pages on the board and a session."""
    sessions = _start(stage, _ASKS)
    seen: dict[int, list[float]] = {0: [], 10: []}
    opened = [page.beside() for _ in range(10)]
    tabs = [each.__enter__() for each in opened]
    for _ in range(rounds):
        for count, found in seen.items():
            for number, tab in enumerate(tabs):
                watched = f"/sessions/{sessions[0]}/" if number % 2 else "/"
                tab.open(f"{stage.address}{watched}" if count else _EMPTY_PAGE)
            with Turns(stage, 0.0) as turns, quiet():
                _pause(seconds)
            found.extend(turns.seconds)
    for count, found in seen.items():
        print(in_ms(f"turn, {count} browsers", found))
    for each in opened:
        each.__exit__(None, None, None)
    _end(stage, sessions)


def load_of_now(stage: Fleet, page: Page, quiet: Callable[[], Any]) -> None:
    """The page Now with 200 sessions: the server's time, and what is sent."""
    from urllib.request import Request, urlopen

    wanted = Request(f"{stage.address}/", headers={"Cookie": f"sessionid={stage.login}"})
    seconds = []
    with quiet():
        for _ in range(20):
            began = time.perf_counter()
            with urlopen(wanted, timeout=30) as answer:
                html = len(answer.read())
            seconds.append(time.perf_counter() - began)
        page.hear_sockets()
        page.open(f"{stage.address}/")
        began = time.perf_counter()
        page.await_text("apt-get upgrade", "main")
        shown = time.perf_counter() - began
    first = next(frame for frame in page.frames if frame["type"] == "board" and frame.get("rows"))
    files = page.evaluate(_SIZE_OF_FILES)
    print(in_ms("page Now, 200 sessions", seconds, "500"))
    rows = len(json.dumps(first))
    print(
        f"  {html / 1000:.0f} kB page, {rows / 1000:.0f} kB rows, {files / 1000:.0f} kB files that "
        f"are kept; rows {1000 * shown:.0f} ms after the load   target 300 kB"
    )


@contextmanager
def _real_time(lock: str) -> Iterator[None]:
    """Let everything that this process started run before all others."""
    with Path(lock).open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _schedule("-f", "10")
        try:
            yield
        finally:
            _schedule("-o", "0")


def _schedule(policy: str, priority: str) -> None:
    for pid in (os.getpid(), *descendants_of(os.getpid())):
        command = ["chrt", "-a", policy, "-p", priority, str(pid)]
        subprocess.run(command, check=False, capture_output=True)


def main() -> None:
    """Print all figures, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--real-time", default="")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with fleet() as stage, stage.page() as page:
        print(machine())

        def wants(name: str) -> bool:
            return not options.names or name in options.names

        def quiet() -> Any:
            return _real_time(options.real_time) if options.real_time else nullcontext()

        if wants("load"):
            load_of_now(stage, page, quiet)
        if wants("keys"):
            keys(stage, page, quiet, 200)
        if wants("flood"):
            flood(stage, page, quiet, options.seconds)
        if wants("board"):
            board(stage, page, quiet, options.seconds, options.rounds)
        if wants("browsers"):
            browsers(stage, page, quiet, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
