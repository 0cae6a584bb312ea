"""The live pages in a browser: the board, a session, and the keyboard in the hands of a person."""

import base64
import shlex
from collections.abc import Iterator

import pytest

from projects.output.screen_view import render_screen
from tests.support.browser import Page
from tests.support.mcp.client import Caller, connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

# Each makes a terminal answer, or tries to leave it: attributes, position, colours, clipboard,
# title, link.
HOSTILE = (
    "\\033[c\\033[>c\\033[6n\\033[5n\\033]11;?\\007\\033P$qm\\033\\\\\\033[>q\\033[14t"
    "\\033]52;c;b3duZWQ=\\007\\033]52;c;?\\007\\033]0;owned\\007"
    "\\033]8;;javascript:alert(1)\\007link\\033]8;;\\007<img src=x onerror=alert(1)>"
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
            data += base64.b64decode(frame["data"])
    return data


async def _stored(caller: Caller, session_id: str) -> bytes:
    page = await caller.call(
        "read_session_output", session_id=session_id, offset=0, view="raw", max_bytes=65536
    )
    return base64.b64decode(page["output_base64"])


async def test_a_killed_server_loses_no_byte_and_doubles_no_key(
    own_stack: Stack, page: Page
) -> None:
    async with connect(own_stack.url, own_stack.provisioned.token) as caller:
        started = await caller.call("start_interactive_command", command="bash --norc")
        session_id = str(started["session_id"])
    with page.beside() as first, page.beside() as second:
        everybody = (page, first, second)
        for tab in everybody:
            tab.hear_sockets()
            tab.open(_address(own_stack, session_id))
            wait_until(
                lambda tab=tab: "$" in "".join(_lines(tab)) or "#" in "".join(_lines(tab)),
                60,
                "a prompt",
            )
        _take(page)
        first.front()
        first.await_text("has the keyboard", "#who")
        page.front()
        page.type_keys("stty -echoctl; PS1='> '; clear\n")
        page.type_keys("for i in $(seq 40); do echo tick-$i; sleep 0.1; done; echo ")
        page.type_keys("begin-0123456789")
        own_stack.kill_server()
        page.type_keys("-abcdefghijklm")
        page.await_text("Not connected", "#connection")
        page.type_keys("-nopqrstuvwxyz-end\n")
        own_stack.start_server()
        typed = "begin-0123456789-abcdefghijklm-nopqrstuvwxyz-end"
        for tab in everybody:
            wait_until(lambda tab=tab: typed in _lines(tab), 120, "the output of what was typed")
        async with connect(own_stack.url, own_stack.provisioned.token) as caller:
            stored = await _stored(caller, session_id)
            for tab in everybody:
                wait_until(lambda tab=tab: len(_received(tab)) >= len(stored), 60, "every byte")
                assert _received(tab) == stored
            wanted = list(render_screen(stored, rows=24, cols=120).lines)
            for tab in everybody:
                assert _lines(tab) == wanted
            await caller.call("send_command_input", session_id=session_id, terminate=True)


async def test_hostile_output_types_nothing_and_a_secret_has_its_field(
    own_stack: Stack, page: Page
) -> None:
    script = own_stack.root / "hostile.sh"
    script.write_text(
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
        page.await_text("Type several lines?", "#paste")
        page.evaluate("document.querySelector('#paste button').click()")
        wait_until(lambda: "[a+b]" in "".join(_lines(page)), 60, "what was pasted")
        page.fill("#release input", "was me")
        page.evaluate("document.querySelector('#release button').click()")
        page.await_text("was me", "#who")
        assert page.errors == []
