"""A recording in a browser: on the replay page, and as a cast in asciinema's own player."""

import json
import subprocess
import tarfile
from base64 import b64encode
from collections.abc import Iterator
from hashlib import sha512
from pathlib import Path

import pytest

from tests.support.browser import Page
from tests.support.mcp.client import connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

PLAYER = "asciinema-player@3.17.0"
PLAYER_SHA512 = (
    "JbjNJmA2TLIeYNaOEja+kVSzXadKoqpIzVVmfBGNj2DmdtE/vExBCnkE8NYEcpaQcDvUYg8Ltt0urT80frACmw=="
)
PROGRAM = r"""
printf '\033[2J\033[H\033[1mList\033[0m \xe2\x82\xac\n'
for number in 1 2 3; do printf 'line %d\n' $number; sleep 0.4; done
printf '\033]52;c;b3duZWQ=\007'
read -p 'Go on? ' answer
printf '\033[3;1Hover\033[6;1Hanswer %s\n' "$answer"
"""
SCREEN = ["List €", "line 1", "over 2", "line 3", "Go on? yes", "answer yes"]


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


async def _recorded(stack: Stack) -> str:
    """The id of a session that has run the program to its end."""
    async with connect(stack.url, stack.provisioned.token) as caller:
        script = stack.root / "recorded.sh"
        script.write_text(PROGRAM)
        async with caller.terminal(f"bash {script}") as terminal:
            assert terminal.kind == "line"
            await terminal.send("yes\n")
            assert (await terminal.until("exited"))["exit_code"] == 0
            return str(terminal.session_id)


def _lines(page: Page, selector: str) -> list[str]:
    return [line.rstrip() for line in page.text(selector).splitlines() if line.strip()]


def _fetched(page: Page, url: str) -> str:
    """The body of an address, read with the login of the page."""
    page.evaluate(
        f"fetch({json.dumps(url)}, {{method: 'POST', body: new FormData("
        "document.querySelector('form.filters'))}).then((answer) => answer.text())"
        ".then((text) => { window.holdlineFetched = text; })"
    )
    return str(
        wait_until(lambda: page.evaluate("window.holdlineFetched"), 90, "the download to end")
    )


def _player(folder: Path) -> Path:
    """The page of asciinema's player with ``recorded.cast`` in it, out of npm."""
    subprocess.run(["npm", "pack", "--silent", PLAYER], cwd=folder, check=True, capture_output=True)
    (package,) = folder.glob("*.tgz")
    assert b64encode(sha512(package.read_bytes()).digest()).decode() == PLAYER_SHA512
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    page = folder / "player.html"
    bundle = "package/dist/bundle/asciinema-player"
    page.write_text(
        f'<link rel="stylesheet" href="{bundle}.css"><div id="player"></div>'
        f'<script src="{bundle}.min.js"></script>'
    )
    return page


async def test_a_session_is_replayed_and_its_cast_plays_elsewhere(
    own_stack: Stack, page: Page, tmp_path: Path
) -> None:
    session_id = await _recorded(own_stack)
    address = f"http://127.0.0.1:{own_stack.port}/sessions/{session_id}/replay/"

    page.open(address)
    page.await_text("prompt (line): Go on?", "#markers")
    page.await_text("input by", "#markers")
    page.await_text("UTC", "#clock")
    # To the end, as a person does it who does not want to wait.
    page.evaluate("document.querySelector('#seek').value = 1e6")
    page.evaluate("document.querySelector('#seek').dispatchEvent(new Event('input'))")
    page.await_text("answer yes", ".xterm-accessibility-tree")
    assert _lines(page, ".xterm-accessibility-tree") == SCREEN
    # Back to the input, and to the prompt before, with the keyboard: the screen is of that time.
    press = "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: %s, bubbles: true}))"
    page.evaluate(press % "'['")
    page.evaluate(press % "'['")
    wait_until(
        lambda: "answer yes" not in page.text(".xterm-accessibility-tree"), 90, "an earlier screen"
    )
    page.await_text("Go on?", ".xterm-accessibility-tree")
    page.keep_picture("replay")
    # What a day before the first names is the beginning.
    page.evaluate("location.hash = '#t=' + new Date(Date.now() - 864e5).toISOString().slice(0, 19)")
    at_beginning = "document.querySelector('#seek').value === '0'"
    wait_until(lambda: page.evaluate(at_beginning), 90, "the beginning")
    # Played from the beginning, the times are those of the host: 1.2 s of sleep and more.
    assert float(page.evaluate("document.querySelector('#seek').max")) >= 1.2
    page.evaluate("location.hash = '#t=' + document.querySelector('#moment').href.slice(-19)")
    page.evaluate("document.querySelector('#speed').value = '16'")
    page.evaluate(press % "' '")
    page.await_text("answer yes", ".xterm-accessibility-tree")
    page.await_text("Play", "#play")
    assert page.errors == []

    cast = _fetched(page, f"{address}download/")
    header, *lines = map(json.loads, cast.splitlines())
    assert "host times" in header["tags"]
    assert lines[-1][1:] == ["x", "0"]
    page.open(_player(tmp_path).as_uri())
    page.evaluate(
        f"AsciinemaPlayer.create({{data: {json.dumps(cast)}}}, document.querySelector('#player'), "
        "{preload: true, speed: 1000, autoPlay: true, fit: false, controls: false})"
    )
    page.await_text("answer yes", ".ap-term")
    # The player puts some characters into boxes of their own.
    assert page.text(".ap-term").split() == " ".join(SCREEN).split()
    page.keep_picture("asciinema-player")


async def test_a_replay_says_that_its_login_has_ended(own_stack: Stack, page: Page) -> None:
    session_id = await _recorded(own_stack)
    page.open(f"http://127.0.0.1:{own_stack.port}/sessions/{session_id}/replay/")
    page.await_text("input by", "#markers")
    own_stack.database.execute("DELETE FROM django_session")
    page.evaluate("document.querySelector('#markers button').click()")
    page.await_text("your login has ended", "#note")
    page.open(f"http://127.0.0.1:{own_stack.port}/sessions/{session_id}/replay/")
    assert "Log in" in page.text("h1")


# The clipboard, the title, a link with a script, pictures, text that runs backwards, a line of a
# megabyte, and queries that make a terminal answer.
HOSTILE = r"""
stty -echo
printf '\033]52;c;b3duZWQ=\007\033]0;owned\007\033]2;owned\007'
printf '\033]8;;javascript:document.title=1\007link\033]8;;\007\n'
printf '\033]1337;File=inline=1:AAAA\007\033P0;0q"1;1;9;9#0~\033\\\n'
printf '\342\200\256backwards\342\200\254\n'
head -c 1000000 /dev/zero | tr '\0' 'A'
printf '\n<img src=x onerror=document.title=1>\n'
printf '\033[c\033[>c\033[6n\033[5n\033]10;?\007\033]11;?\007\033]4;1;?\007\033[?1004h'
printf '\033P$qm\033\\\033[21t'
printf '\033]unfinished'
printf '\030behind\n'
read -t 1 answered
printf 'answers: %s.\n' "${#answered}"
"""


async def test_hostile_output_that_is_replayed_harms_no_page(own_stack: Stack, page: Page) -> None:
    script = own_stack.root / "hostile.sh"
    script.write_text(HOSTILE)
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal(f"bash {script}") as terminal,
    ):
        await terminal.until("exited", 60)
        session_id = terminal.session_id
    page.open(f"http://127.0.0.1:{own_stack.port}/sessions/{session_id}/replay/")
    page.await_text("UTC", "#clock")
    title = page.evaluate("document.title")
    page.evaluate(
        "window.holdlineSent = []; for (const name of ['fetch', 'open'])"
        " { const was = window[name]; window[name] = function (...all)"
        " { window.holdlineSent.push(String(all[0])); return was.apply(this, all); }; }"
    )
    page.evaluate("document.querySelector('#seek').value = 1e6")
    page.evaluate("document.querySelector('#seek').dispatchEvent(new Event('input'))")
    page.await_text("answers: 0.", ".xterm-accessibility-tree")
    assert "behind" in page.text(".xterm-accessibility-tree")
    assert page.evaluate("document.title") == title
    assert page.evaluate("document.querySelectorAll('#screen img, #screen a[href]').length") == 0
    # Only parts and screens of the recording are asked for, and nothing is sent.
    sent = page.evaluate("window.holdlineSent")
    assert all("/replay/part/" in url or "/replay/screen" in url for url in sent)
    page.keep_picture("replay-hostile")
    assert page.errors == []
