"""The console's pages in a browser: by keyboard alone, at both widths, in both colour schemes."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser import Page
from tests.support.mcp.client import connect
from tests.support.mcp.node_packages import NodePackages
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

PAGES = ("approvals", "attention", "hosts", "runs", "search", "timeline")
LOOKS: tuple[dict[str, Any], ...] = tuple(
    {"width": width, "scheme": scheme} for width in (1280, 390) for scheme in ("dark", "light")
)
_IS_IN_A_ROW = "document.activeElement.closest('[data-row]') !== null"
_AXE = """
axe.run({resultTypes: ["violations"]}).then(found => found.violations
  .filter(one => ["serious", "critical"].includes(one.impact))
  .map(one => `${one.id}: ${one.nodes.map(node => node.target + " " + node.failureSummary)}`))
"""


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


def _assert_usable(page: Page, axe: str, name: str) -> None:
    """The open page has no serious fault, at each width and in each colour scheme."""
    page.evaluate(f"{axe}; null")
    for look in LOOKS:
        page.look_like(**look)
        page.keep_picture(f"console-{name}-{look['width']}-{look['scheme']}")
        assert page.awaited(_AXE) == [], (name, look)
        assert not _is_too_wide(page), (name, look)


def _is_too_wide(page: Page) -> bool:
    return bool(
        page.evaluate("document.documentElement.scrollWidth > document.documentElement.clientWidth")
    )


async def test_every_page_is_usable_and_no_policy_is_broken(
    own_stack: Stack, page: Page, node_packages: NodePackages
) -> None:
    axe = node_packages.path("axe-core/axe.min.js").read_text()
    console = f"http://127.0.0.1:{own_stack.port}"
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal("bash -c 'echo needle; read -p Go? x'") as terminal,
    ):
        assert terminal.kind == "line"
        page.open(f"{console}/hosts/")
        host = page.evaluate(
            "[...document.querySelectorAll('tbody a')].find(link => link.text === 'host').pathname"
        )
        session = f"/sessions/{terminal.session_id}/"
        for name, address, shows in (
            *((name, f"/{name}/", "") for name in PAGES),
            ("now", "/", "Go?"),
            ("host", host, ""),
            ("found", "/search/?q=needle", "needle"),
            ("session", session, "Take over"),
            ("replay", f"{session}replay/", "prompt (line)"),
            ("second-factor", "/login/second-factor/", "authenticator"),
        ):
            page.open(console + address)
            page.await_text(shows, "main")
            _assert_usable(page, axe, name)
        page.open(console + host)
        page.click("form[action$='/echo/'] button")
        assert re.search(r"Echo of a terminal\s+\d+ ms, measured", page.text("main"))
        page.open(f"{console}/hosts/")
        page.fill("input[name=name]", "new-host")
        page.click("form[action$='/enrol/'] button")
        _assert_usable(page, axe, "enrol")
    assert page.errors == []


async def test_a_person_types_a_secret_on_a_phone(
    own_stack: Stack, page: Page, node_packages: NodePackages
) -> None:
    axe = node_packages.path("axe-core/axe.min.js").read_text()
    async with (
        connect(own_stack.url, own_stack.provisioned.token) as caller,
        caller.terminal("bash -c 'read -r -s -p Password: s; echo; echo went on'") as terminal,
    ):
        asks = {"session_id": terminal.session_id, "ask_person": "the password of web-17"}
        refused = await caller.refusal("send_command_input", **asks, wait_seconds=0)
        assert refused["code"] == "PERSON_PENDING"
        page.look_like(width=390, scheme="dark")
        page.open(f"http://127.0.0.1:{own_stack.port}{refused['error'].split()[-1]}")
        page.await_text("the password of web-17", "main")
        _assert_usable(page, axe, "secret")
        page.fill("input[name=typed]", "zarniwoop")
        page.click("form.secret button")
        page.await_text("It is typed", "body")
        answer = await caller.call(
            "send_command_input", session_id=terminal.session_id, wait_seconds=30
        )
        assert "went on" in answer["output"]
        assert "zarniwoop" not in answer["output"]
    assert page.errors == []


def _await_page(page: Page, condition: str) -> None:
    """Wait for a page whose scripts have run."""
    loaded = f"document.readyState === 'complete' && {condition}"
    wait_until(lambda: page.seen(loaded), 60, f"a page with {condition}")


def test_a_host_is_reached_and_the_keys_are_listed_without_a_mouse(
    own_stack: Stack, page: Page
) -> None:
    page.open(f"http://127.0.0.1:{own_stack.port}/timeline/")
    for key in ("g", "h"):
        page.press(key)
    _await_page(page, "location.pathname === '/hosts/'")
    page.press("?")
    page.await_text("next row, row before", "#keys[open]")
    page.press("Enter")
    wait_until(lambda: page.text("#keys[open]") == "", 90, "the list of keys to close")
    page.press("j")
    wait_until(lambda: page.evaluate(_IS_IN_A_ROW), 90, "the focus in a row")
    page.press("Enter")
    _await_page(page, "location.pathname !== '/hosts/'")
    assert "Credential age" in page.text("main")


def test_the_login_page_is_usable_too(
    own_stack: Stack, page: Page, node_packages: NodePackages
) -> None:
    page.open(f"http://127.0.0.1:{own_stack.port}/")
    page.click("header form button")
    assert "Log in" in page.text("h1")
    axe = node_packages.path("axe-core/axe.min.js").read_text()
    _assert_usable(page, axe, "login")
