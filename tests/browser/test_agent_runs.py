"""Runs in the console in a browser: start, follow, approve and take over."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.agents.model_server import ModelServer, Says, Seen, call, done, in_turn
from tests.support.browser import Page
from tests.support.stack import Stack, running_stack

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
LINES = "#lines"


@pytest.fixture(scope="module")
def own_stack(models: ModelServer) -> Iterator[Stack]:
    """Its server carries out runs of the models that tests write down."""
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
        "HOLDLINE_AGENT_APPROVALS": "auto",
    }
    with running_stack(server_environment=environment) as stack:
        yield stack


def start_run(stack: Stack, page: Page, model: str, task: str, *, approvals: str = "") -> None:
    """Starts a run from its form, and leaves the page of the run open."""
    page.open(f"http://127.0.0.1:{stack.port}/runs/")
    page.click("main p a")
    page.evaluate(
        "for (const one of document.querySelectorAll('#id_project option')) { one.selected = "
        "one.text === 'first' }"
    )
    page.fill("#id_task", task)
    page.fill("#id_model", model)
    page.evaluate(f"document.querySelector('#id_approvals').value = '{approvals}'")
    page.keep_picture("run-form")
    page.click("main form input[type=submit]")
    assert task in page.text("main")


def test_a_run_is_seen_as_it_goes_and_what_it_asks_is_answered(
    own_stack: Stack, page: Page, models: ModelServer, tmp_path: Path
) -> None:
    go_on, file, show = threading.Event(), tmp_path / "old", tmp_path / "show.txt"
    file.touch()
    show.write_text(f"{HOSTILE} \x1b]0;owned\x07 \u202egnp.exe\n")
    models.scripts["seen"] = in_turn(
        Says(
            f"I look. {HOSTILE}", call("execute_command", command=f"cat {show}").calls, go_on=go_on
        ),
        call("execute_command", command=f"rm {file}"),
        done("tidied up"),
    )
    start_run(own_stack, page, "openai:seen", f"tidy up {HOSTILE}", approvals="ask-risky")
    page.evaluate("window.holdlineSame = true")
    page.await_text(f"I look. {HOSTILE}", LINES)
    go_on.set()
    page.await_text("asks for approval", ".approval")
    page.keep_picture("run-asks")
    assert HOSTILE in page.text(".line-output")
    assert page.evaluate("window.holdlineSame")
    # Without a mouse: the call is marked, then approved.
    page.press("a")
    page.press("j")
    page.press("a")
    page.await_text("Finished (done)", "#live p")
    page.keep_picture("run-over")
    assert "tidied up" in page.text(LINES)
    assert not file.exists()
    assert page.evaluate("document.title").endswith("· Holdline")
    assert "\u202e" not in page.text()
    assert page.errors == []


def test_an_operator_takes_the_keyboard_and_hands_it_back_with_a_note(
    own_stack: Stack, page: Page, models: ModelServer
) -> None:
    taken = threading.Event()
    asks = (
        """bash -c 'read -p "Name: " name; echo "hello $name"; """
        """read -p "More: " more; echo "more $more"'"""
    )

    def types(seen: Seen, text: str) -> Says:
        return call(
            "send_command_input",
            session_id=seen.value("session_id"),
            input_text=text,
            wait_seconds=30,
        )

    def play(seen: Seen) -> Says:
        if not seen.results:
            return call("start_interactive_command", command=asks, wait_seconds=20)
        if "more mine" in seen.last:
            return done()
        if len(seen.results) > 1:
            # A wait may run out before a slow machine has handed back.
            is_free = "SESSION_TAKEN_OVER" not in seen.last and "hello person" in "\n".join(
                seen.results
            )
            return types(seen, "mine\n" if is_free else "")
        return Says("I type.", types(seen, "agent\n").calls, go_on=taken)

    models.scripts["taken-in-browser"] = play
    start_run(own_stack, page, "anthropic:taken-in-browser", "greet")
    run_page = page.evaluate("location.href")
    page.await_text("Its sessions", "#live")
    page.click("#live p a")
    session_page = page.evaluate("location.href")
    page.await_text("Take over", ".hands")
    page.evaluate("document.querySelector('#take').click()")
    page.await_text("You have the keyboard", "#who")
    taken.set()
    page.open(run_page)
    page.await_text("SESSION_TAKEN_OVER", LINES)
    page.open(session_page)
    page.await_text("has the keyboard", "#who")
    page.evaluate("document.querySelector('#take').click()")
    page.await_text("You have the keyboard", "#who")
    page.type_keys("person\n")
    page.await_text("More:", "#prompt")
    page.keep_picture("taken-over")
    page.fill("#release input", "I gave it my name")
    page.evaluate("document.querySelector('#release button').click()")
    page.await_text("I gave it my name", "#who")
    page.open(run_page)
    page.await_text("Finished (done)", "#live p")
    page.keep_picture("handed-back")
    hints = [
        fact
        for fact in models.requests["taken-in-browser"][-1].results
        if "I gave it my name" in fact
    ]
    assert hints
    assert "hello agent" not in page.text()
    assert page.errors == []
