"""A jump in a replay shows exactly what playing from the beginning would show.

The recordings are of real full-screen programs, and the emulator is that of a real browser.
"""

import json
import shutil
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from tests.support.browser import Page
from tests.support.mcp.client import Caller, connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

PROGRAMS = {
    "vim -u NONE -c 'set nu' -c 'syntax on' /etc/services": ("\x06", "/http\r", ":split\r", "\x06"),
    "top -d 0.2": ("z", "c", "1"),
    "htop": ("\x1b[B", "\x1b[B", "\x1bOS"),
    "less -R /etc/services": (" ", "/tcp\r", "n", "G"),
    "mc -u": ("\x1b[B", "\t", "\x1b[B"),
}
SIZE = {"rows": 24, "cols": 80}
LONG_BYTES = 2_400_000
IS_GROWING = """fetch(document.querySelector("#replay").dataset.screens)
  .then((answer) => answer.ok ? answer.json() : Promise.reject(answer.status))
  .then((found) => found.is_growing)"""
# Two players of the same recording: one jumps, the other begins at the beginning.
PLAYERS = """(async () => {
  const [{ Player }, { makeScreen }, state] = await Promise.all(
    ["screens/player.js", "live/screen.js", "screens/state.mjs"].map((name) => import(
      document.querySelector('script[src*="replay"]').src.replace(/replay[^/]*$/, name))));
  const urls = document.querySelector("#replay").dataset;
  const index = await (await fetch(urls.index)).json();
  const player = async (shown) => {
    const place = document.body.appendChild(document.createElement("div"));
    Object.assign(place.dataset, document.querySelector("#screen").dataset);
    return new Player(shown, await makeScreen(place, () => {}), urls);
  };
  const [jumps, plays] = [await player(index), await player({ ...index, places: [] })];
  await jumps.learn();
  window.holdlineAt = async (time) => {
    const [from] = [jumps.placeBefore(time)];
    await Promise.all([jumps.seek(time), plays.seek(time)]);
    const [one, other] = [jumps, plays].map(({ term }) =>
      JSON.parse(JSON.stringify(state.stateOf(term))));
    const said = (value) => JSON.stringify(value);
    const differ = Object.keys(one).filter((name) => said(one[name]) !== said(other[name]));
    return [from.stdout, differ.map((name) => [name, said(one[name]), said(other[name])])];
  };
  return [index.places.map(({ time }) => time), jumps.screens.length];
})()"""


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


async def _drawn(stack: Stack, caller: Caller, command: str, keys: tuple[str, ...]) -> bytes:
    """What the program wrote while it was driven, and at its end."""
    async with caller.terminal(command, wait_seconds=3, **SIZE) as terminal:
        for key in keys:
            await terminal.send(key, wait_seconds=1)
    return _raw(stack, terminal.session_id)


def _raw(stack: Stack, session_id: str) -> bytes:
    address = f"http://127.0.0.1:{stack.port}/recordings/{session_id}?format=raw"
    key = {"Authorization": f"Bearer {stack.provisioned.token}"}
    with urlopen(Request(address, headers=key), timeout=60) as answer:
        return bytes(answer.read())


async def _recorded(stack: Stack) -> str:
    """The id of a session whose output is that of real programs, one after the other."""
    installed = {name: keys for name, keys in PROGRAMS.items() if shutil.which(name.split()[0])}
    assert installed
    async with connect(stack.url, stack.provisioned.token) as caller:
        drawn = b"".join(
            [await _drawn(stack, caller, command, keys) for command, keys in installed.items()]
        )
        script, bytes_ = stack.root / "again.sh", stack.root / "drawn"
        bytes_.write_bytes(drawn)
        # The pause gives each of them a time of its own.
        count = LONG_BYTES // len(drawn) + 1
        again = f"for again in $(seq {count}); do cat {bytes_}; sleep 0.15; done"
        script.write_text(f"stty -opost; {again}\n")
        async with caller.terminal(f"bash {script}", **SIZE) as terminal:
            await terminal.until("exited", 120)
            return str(terminal.session_id)


async def test_a_jump_shows_what_playing_shows(own_stack: Stack, page: Page) -> None:
    session_id = await _recorded(own_stack)
    page.open(f"http://127.0.0.1:{own_stack.port}/sessions/{session_id}/replay/")
    page.await_text("UTC", "#clock")
    wait_until(lambda: not page.awaited(IS_GROWING), 120, "the screens to be made")
    times, screens = page.awaited(PLAYERS)
    assert screens >= LONG_BYTES // (512 * 1024), len(_raw(own_stack, session_id))
    begun = set()
    for time in times[:: max(1, len(times) // 12)]:
        start, differ = page.awaited(f"window.holdlineAt({json.dumps(time)})")
        assert differ == [], (time, start)
        begun.add(start)
    # The jumps began at several screens, and not at the beginning.
    assert len(begun - {0}) >= 3
    assert page.errors == []
