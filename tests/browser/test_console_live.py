"""The live pages in a browser: the board, a session, and the keyboard in the hands of a person."""

import base64
import shlex
from collections.abc import Iterable, Iterator, Sequence

import pytest

from projects.output.screen_view import render_screen
from tests.support.accounts import Account, requires
from tests.support.browser import Page
from tests.support.mcp.client import Caller, connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until, wait_until

# Each makes a terminal answer, or tries to leave it: attributes, position, colours, clipboard,
# title, link, pictures, text from right to left.
HOSTILE = (
    "\\033[c\\033[>c\\033[6n\\033[5n\\033]11;?\\007\\033P$qm\\033\\\\\\033[>q\\033[14t"
    "\\033]52;c;b3duZWQ=\\007\\033]52;c;?\\007\\033]0;owned\\007"
    "\\033]8;;javascript:alert(1)\\007link\\033]8;;\\007<img src=x onerror=alert(1)>"
    "\\033]1337;File=inline=1:aGk=\\007\\033Pq#0;2;0;0;0~-\\033\\\\\\342\\200\\256gnp.exe"
)


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


def _address(stack: Stack, session_id: str) -> str:
    return f"http://127.0.0.1:{stack.port}/sessions/{session_id}/"


def _lines(page: Page) -> list[str]:
    """The rows on the screen, without the blanks at their ends."""
    page.front()
    rows = page.evaluate(
        "[...document.querySelectorAll('.xterm-rows > div')].map(row => row.textContent)"
    )
    return [row.replace("\xa0", " ").rstrip() for row in rows]


def _take(page: Page) -> None:
    page.await_text("Take over", ".hands")
    page.evaluate("document.querySelector('#take').click()")
    page.await_text("You have the keyboard", "#who")


def _received(page: Page) -> bytes:
    """The bytes that the page was sent, which have to be without a hole and without a repeat."""
    data = b""
    page.evaluate("0")
    for frame in page.frames:
        if frame["type"] == "begin":
            assert frame["offset"] == 0
        if frame["type"] == "output":
            assert frame["offset"] == len(data)
            data += frame["data"]
    return data


def _errors_of_the_page(tab: Page) -> list[str]:
    """What the console tells, without the notes of Chromium on a server that is not there.

    Chromium writes such a note for each socket and request, whatever the page does about it.
    """
    notes = ("WebSocket", "net::ERR_CONNECTION_", "net::ERR_EMPTY_RESPONSE")
    return [error for error in tab.errors if not any(note in error for note in notes)]


async def _stored(caller: Caller, session_id: str) -> bytes:
    page = await caller.call(
        "read_session_output", session_id=session_id, offset=0, view="raw", max_bytes=65536
    )
    return base64.b64decode(page["output_base64"])


def _all_show(tabs: Iterable[Page], text: str) -> None:
    for tab in tabs:
        wait_until(lambda tab=tab: text in "".join(_lines(tab)), 120, f"{text!r} on a screen")


async def _screens_are_those_of_the_ledger(
    stack: Stack, session_id: str, tabs: Sequence[Page]
) -> None:
    """Every tab was sent each byte once, and shows what an emulator makes of the stored bytes.

    The program may still print, so what is stored is read again until all agree.
    """

    async def stored() -> bytes:
        async with connect(stack.url, stack.provisioned.token) as caller:
            return await _stored(caller, session_id)

    async def have_all() -> bool:
        wanted = await stored()
        return all(_received(tab) == wanted for tab in tabs)

    async def show_all() -> bool:
        wanted = list(render_screen(await stored(), rows=24, cols=120).lines)
        return all(_lines(tab) == wanted for tab in tabs)

    await await_until(have_all, 90, "every byte, once, in every tab")
    await await_until(show_all, 90, "the screen of the stored bytes in every tab")


async def test_a_killed_server_loses_no_byte_and_doubles_no_key(
    own_stack: Stack, page: Page, sudoer: Account
) -> None:
    requires("vim", "sudo")
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        started = await caller.call(
            "start_interactive_command",
            command=f"{sudoer.shell_prefix} PS1='> ' bash --norc",
            cwd=str(sudoer.home),
        )
        session_id = str(started["session_id"])
    with page.beside() as first, page.beside() as second:
        everybody = (page, first, second)
        for tab in everybody:
            tab.hear_sockets()
            tab.open(_address(own_stack, session_id))
        _all_show(everybody, ">")
        page.front()
        _take(page)
        first.front()
        first.await_text("has the keyboard", "#who")
        page.front()
        page.type_keys("vim -u NONE -N notes\n")
        _all_show(everybody, "~~~")
        page.front()
        page.type_keys("ibegin-0123456789")
        own_stack.kill_server()
        page.type_keys("-abcdefghijklm")
        page.await_text("Not connected", "#connection")
        page.type_keys("-nopqrstuvwxyz-end")
        own_stack.start_server()
        typed = "begin-0123456789-abcdefghijklm-nopqrstuvwxyz-end"
        _all_show(everybody, typed)
        await _screens_are_those_of_the_ledger(own_stack, session_id, everybody)
        page.front()
        page.press("Escape")
        page.type_keys(":wq\n")
        notes = sudoer.home / "notes"
        wait_until(lambda: notes.exists() and notes.read_text() == f"{typed}\n", 60, "the text")
        # What is typed while vim still puts the terminal back is discarded by vim.
        wait_until(lambda: ">" in _lines(page), 60, "the shell's prompt")
        page.type_keys("clear; sudo -k id\n")
        page.await_text("Secret", "#field")
        own_stack.kill_server()
        page.fill("#field input", sudoer.password)
        page.evaluate("document.querySelector('#field button').click()")
        own_stack.start_server()
        _all_show(everybody, "uid=0(root)")
        await _screens_are_those_of_the_ledger(own_stack, session_id, everybody)
        for tab in everybody:
            assert sudoer.password not in "".join(_lines(tab))
            assert _errors_of_the_page(tab) == []
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        await caller.call("send_command_input", session_id=session_id, terminate=True)


async def test_hostile_output_types_nothing_and_a_secret_has_its_field(
    own_stack: Stack, page: Page
) -> None:
    script = own_stack.root / "hostile.sh"
    script.write_text(
        "head -c 1000000 /dev/zero | tr '\\0' x; clear\n"
        f"printf {shlex.quote(HOSTILE)}; read -r -p ' Go on? ' answer\n"
        "printf '[%q]\\n' \"$answer\"\n"
        "read -rs -p 'Password: ' word; printf '[%s letters]\\n' ${#word}; read -p 'More? ' one\n"
        "read -p 'Again? ' two; printf '[%s+%s]\\n' $one $two; sleep 100\n"
    )
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal(f"bash {script}") as terminal,
    ):
        page.open(_address(own_stack, terminal.session_id))
        wait_until(lambda: "Go on?" in "".join(_lines(page)), 60, "the question")
        page.type_keys("x")
        _take(page)
        page.type_keys("yes\n")
        # The host answers queries itself, once. Had the page answered, too, or typed while it only
        # watched, that would be in the answer.
        wait_until(lambda: "yes'" in "".join(_lines(page)), 60, "the answer")
        answer = "".join(_lines(page)).rsplit("[$'", 1)[1].split("yes'")[0]
        assert answer.count("?62;22c") == 1
        assert not any(each in answer for each in ("?1;2c", "0;276;0c", "rgb:1010", "x"))
        assert "owned" not in page.evaluate("document.title")
        page.await_text("Secret", "#field")
        page.keep_picture("console-secret")
        # An empty field is no answer: the program would take an empty password.
        page.evaluate("document.querySelector('#field button').click()")
        page.await_text("Nothing was typed: the field is empty", "#notice")
        page.fill("#field input", "hunter2!")
        page.evaluate("document.querySelector('#field button').click()")
        wait_until(lambda: "[8 letters]" in "".join(_lines(page)), 60, "the length")
        assert page.evaluate("document.querySelector('#field input').value") == ""
        assert "hunter2" not in page.text()
        wait_until(lambda: "More?" in "".join(_lines(page)), 60, "the next question")
        page.evaluate(
            "{const data = new DataTransfer(); data.setData('text/plain', 'a\\nb\\n');"
            "document.querySelector('.xterm-helper-textarea').dispatchEvent(new ClipboardEvent("
            "'paste', {clipboardData: data, bubbles: true, cancelable: true}));}"
        )
        page.await_text("Type several lines or control characters?", "#paste")
        page.evaluate("document.querySelector('#paste button').click()")
        wait_until(lambda: "[a+b]" in "".join(_lines(page)), 60, "what was pasted")
        page.fill("#release input", "was me")
        page.evaluate("document.querySelector('#release button').click()")
        page.await_text("was me", "#who")
        assert page.errors == []


async def test_a_session_that_ends_takes_the_keyboard_along(own_stack: Stack, page: Page) -> None:
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal("bash -c 'read -p Go? x'") as terminal,
    ):
        page.open(_address(own_stack, terminal.session_id))
        page.await_text("Go?", "#prompt")
        _take(page)
        page.type_keys("\nmore")
        page.await_text("The session has ended", "#notice")
        page.await_text("exit code 0", "#state")
        page.await_text("Replay", ".hands")
        assert page.evaluate(
            "['#release', '#take'].every((place) => document.querySelector(place).hidden)"
        )
        assert page.errors == []


# The page gets the first answer about events as an error, and each next one when it is let go.
HELD_ANSWERS = """
window.held = []; window.plain = window.fetch; let isFirst = true;
window.fetch = async (...asked) => {
  if (isFirst) { isFirst = false; return new Response("", { status: 503 }); }
  const answer = await window.plain(...asked);
  await new Promise((go) => { window.held.push(go); });
  return answer;
};
"""

# The numbers of the events that the page lists, and of all that the server answers at once.
LISTED_AND_EVERY = """
(async () => {
  const place = document.querySelector("[data-events]").dataset.events;
  const answer = document.createElement("ol");
  answer.innerHTML = await (await fetch(`${place}?after=0`)).text();
  const lists = [document.querySelector("#events"), answer];
  return lists.map((list) => [...list.children].map((item) => +item.dataset.seq));
})()
"""


async def test_no_event_is_missing_when_answers_overtake_changes(
    own_stack: Stack, page: Page
) -> None:
    def is_held(count: int) -> bool:
        return bool(page.evaluate(f"window.held.length >= {count}"))

    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal("bash -c 'read -p Go? x'") as terminal,
    ):
        page.open(_address(own_stack, terminal.session_id))
        page.await_text("Go?", "#prompt")
        page.await_text("prompt", "#events")
        page.evaluate(HELD_ANSWERS)
        _take(page)
        wait_until(lambda: is_held(1), 90, "the event of the keyboard to be asked for again")
        page.type_keys("\n")
        page.await_text("exit code 0", "#state")
        wait_until(lambda: is_held(2), 90, "the event of the end to be asked for")
        page.evaluate("window.fetch = window.plain; window.held.forEach((go) => go())")
        page.await_text("ended", "#events")

        def is_whole() -> bool:
            # What follows the end, such as the end of the keyboard, may still be on its way.
            listed, every = page.awaited(LISTED_AND_EVERY)
            assert len(every) >= 3, "the prompt, the keyboard and the end"
            return bool(listed == every)

        wait_until(is_whole, 60, "every event on the page, once, in its order")
        assert page.errors == []
