"""What an operator does, in clicks and seconds: ``python -m benchmarks.console.tasks``.

The tasks are those of a person who looks after 40 hosts with 200 sessions, one of them at a hidden
prompt. A click is a click or a key that takes its place; text that is typed does not count.
``--pictures FOLDER`` takes the pictures of the documentation meanwhile.
"""

import argparse
import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4

from benchmarks.console.stage import HOST, Fleet, fleet
from benchmarks.harness import machine
from tests.support.browser import Page
from tests.support.mcp.client import ToolRefusedError, connect
from tests.support.waiting import wait_until

_STUCK = """read -rsp "[sudo] password for deploy: " password; echo; echo restarted; sleep 300"""
_ENDED = """
for step in 1 2 3 4 5 6; do echo "step $step of 6"; sleep 0.4; done
read -p "Remove 3 old releases? [y/N] " answer; echo "removed: $answer, needle-4711"
"""


_RISKY = "rm -f /nonexistent/old-release"


@contextmanager
def held_call(stage: Fleet) -> Iterator[None]:
    """A call that waits for a person while the block lasts, and is made once it is approved."""
    stage.stack.database.execute("UPDATE projects_project SET approvals = 'ask-all'")

    async def call() -> None:
        async with connect(stage.stack.url, stage.stack.provisioned.token) as caller:
            place = {"controller": HOST, "request_id": str(uuid4())}
            while True:
                with suppress(ToolRefusedError):
                    await caller.call("execute_command", command=_RISKY, **place)
                    return

    caller = threading.Thread(target=asyncio.run, args=(call(),))
    caller.start()
    asked = "SELECT id FROM projects_approval WHERE answer = 'pending'"
    wait_until(lambda: stage.stack.database.rows(asked), 60, "the question")
    yield
    caller.join()


class Walk:
    """One task. ``seconds`` counts from the first click to what the operator wanted to see."""

    def __init__(self, page: Page, name: str, old: str) -> None:
        self._page, self._name, self._old = page, name, old
        self._clicks = 0
        self._began = time.perf_counter()

    def click(self, selector: str, shows: str, within: str = "main", *, named: str = "") -> None:
        """Click something, and wait for what it leads to."""
        self._clicks += 1
        self._page.evaluate(
            f"[...document.querySelectorAll({selector!r})]"
            f".find(one => one.textContent.includes({named!r})).click()"
        )
        self._page.await_text(shows, within)

    def done(self) -> None:
        """Print the task as a row of a table."""
        took = time.perf_counter() - self._began
        print(f"| {self._name} | {self._old} | {self._clicks}; {took:.1f} s |", flush=True)


class Operator:
    """The person with their browser, and the folder for pictures."""

    def __init__(self, stage: Fleet, page: Page, pictures: Path | None) -> None:
        self.stage, self.page, self._pictures = stage, page, pictures

    def take_picture(self, name: str, *, width: int = 1280) -> None:
        """Keep a picture of the page as it is."""
        if self._pictures is not None:
            self.page.screenshot(self._pictures / f"{name}-{width}.webp")

    def start(self, name: str, old: str, path: str = "/", shows: str = "") -> Walk:
        """Begin a task with opening this page."""
        walk = Walk(self.page, name, old)
        self.page.open(self.stage.address + path)
        self.page.await_text(shows, "main")
        return walk

    def look_on_a_phone(self) -> None:
        """The board at the width of a phone, for its picture alone."""
        self.page.look_like(width=390, scheme="light")
        self.page.open(self.stage.address)
        self.page.await_text("[sudo] password", "[data-group=person]")
        self.take_picture("now", width=390)
        self.page.look_like(width=1280, scheme="dark")

    def find(self) -> None:
        """The session that is stuck at a password, seen live, taken over, and handed back."""
        walk = self.start("find the session stuck at a password", "2 + 3 pages by eye; 4 s")
        self.page.await_text("[sudo] password", "[data-group=person]")
        walk.done()
        self.take_picture("now")
        walk = Walk(self.page, "see what it shows now, live", "reload by hand; 0.9 s")
        walk.click("[data-group=person] a", "waits for a secret")
        wait_until(lambda: "[sudo] password" in self.page.text(".xterm-rows"), 60, "the screen")
        walk.done()
        walk = Walk(self.page, "take over and type the secret", "1 + 1 per line; 0.9 to 3 s")
        walk.click("#take", "You have the keyboard")
        self.page.await_text("Secret", "#field")
        self.take_picture("take-over")
        self.page.fill("#field input", "correct horse")
        walk.click("#field button", "restarted", ".xterm-rows")
        walk.done()
        walk = Walk(self.page, "hand back with a note", "1; 0.5 s")
        self.page.fill("#release input", "typed the password")
        walk.click("#release button", "Handed back", "#who")
        walk.done()

    def look_back(self, session_id: str) -> None:
        """A session that has ended: its replay, a moment of it, and a line that it printed."""
        walk = self.start("replay an ended session at a moment", "not possible", "/hosts/", HOST)
        walk.click("main a", "Ended sessions", named=HOST)
        walk.click(f"a[href='/sessions/{session_id}/']", "Replay")
        walk.click("#replay", "prompt (line)", "#markers")
        walk.click(
            "#markers button", "Remove 3", ".xterm-accessibility-tree", named="prompt (line)"
        )
        walk.done()
        self.take_picture("replay")
        walk = self.start("search a line of output", "not possible", "/")
        walk.click("[data-key=s]", "RE2")
        self.page.fill("input[name=q]", "needle-47")
        walk.click("main form button", "needle-4711")
        walk.click(".hit a", "prompt (line)", "#markers")
        walk.done()

    def approve(self) -> None:
        """A call that waits for a person, and afterwards: who approved it."""
        walk = self.start("find, read and approve a call that waits", "not possible", "/")
        walk.click("[data-key=a]", _RISKY)
        walk.click(".call a", "Approve once", named=_RISKY)
        walk.click("button[value=approve]", "Approved", "body")
        walk.done()
        walk = self.start("who approved what a session did", "not possible", "/hosts/", HOST)
        walk.click("main a", "Ended sessions", named=HOST)
        walk.click("main a[href^='/sessions/']", "approved by", named=_RISKY)
        walk.done()

    def answer_for_it(self) -> None:
        """Who did what, and about which host."""
        walk = self.start("who took which keyboard", "2; 0.4 s, without host and command", "/")
        walk.click("[data-key=t]", "Verify")
        walk.click("a[href$='action=take_over']", "session.take_over")
        # The page before shows these words as well.
        wait_until(lambda: "take_over" in self.page.evaluate("location.search"), 60, "the filter")
        self.page.await_text("Verify", "main")
        walk.done()
        self.take_picture("timeline")
        walk = Walk(self.page, "verify the log", "a command")
        walk.click("button[formaction]", "none is missing or changed", "body")
        walk.done()
        walk = self.start("export what a filter leaves", "not possible", "/timeline/?action=input")
        walk.click("button[value=csv]", "")
        walk.done()
        walk = self.start("everything about one host", "not possible", "/")
        walk.click("[data-key=h]", HOST)
        walk.click("main a", "Echo of a terminal", named=HOST)
        walk.done()
        self.take_picture("host")


async def _sessions(stage: Fleet) -> str:
    """Start the session that is stuck, and let another one end. Returns the id of that."""
    root = stage.stack.root
    (root / "restart-shop").write_text(_STUCK)
    (root / "clean-up").write_text(_ENDED)
    place = {"controller": HOST, "cwd": str(root)}
    async with connect(stage.stack.url, stage.stack.provisioned.token) as caller:
        async with caller.terminal("bash clean-up", **place) as ended:
            await ended.send("y\n")
            await ended.until("exited")
        await caller.call("start_interactive_command", command="bash restart-shop", **place)
        return str(ended.session_id)


def main() -> None:
    """Print one row of a table for each task."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", type=Path)
    options = parser.parse_args()
    with fleet() as stage, stage.page() as page:
        print(machine())
        ended = asyncio.run(_sessions(stage))
        operator = Operator(stage, page, options.pictures)
        operator.look_on_a_phone()
        operator.find()
        operator.look_back(ended)
        operator.answer_for_it()
        with held_call(stage):
            operator.approve()


if __name__ == "__main__":
    main()
