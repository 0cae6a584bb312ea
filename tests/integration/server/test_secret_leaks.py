"""Secrets that are given by name, or typed by a person, are then kept and shown nowhere.

Each search is also made for a word that was typed openly, and must find that word.
"""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from controller_client.holder.output.spellings import forms_of
from tests.support.accounts import Account, requires
from tests.support.agents.commands import RunRows, submitter
from tests.support.agents.fixtures import RUN_SECONDS
from tests.support.agents.model_server import ModelServer, Says, Seen, call, done, in_turn
from tests.support.databases.cluster import running_backends, running_cluster
from tests.support.databases.live_files import contents_below
from tests.support.databases.redis_monitor import Traffic, monitored
from tests.support.databases.redis_server import Redis
from tests.support.management import manage_well
from tests.support.mcp.client import Caller, Terminal
from tests.support.people.console import ConsoleSocket, console_socket
from tests.support.processes import descendants_of
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until, wait_until

CANARY = "canary-4711-in-the-open"
# Reads a hidden line, then shows it in clear and in base64.
_SHOWS = (
    """read -p "Say: " word; read -r -s -p "Password: " s; echo; echo "<$s>"; """
    """printf %s "$s" | base64; read -p "Done? " x"""
)
LEAKY = f"bash -c '{_SHOWS}' {CANARY}"
FACTOR = "551-2093-second-factor"
# Asks for a second factor as well, and shows it likewise.
_ASKS_TWICE = _SHOWS.replace(
    'read -p "Done',
    """read -r -s -p "Code: " c; echo; echo "<$c>"; printf %s "$c" | base64; read -p "Done""",
)
TWO_FACTORS = f"bash -c '{_ASKS_TWICE}' {CANARY}"


@dataclass
class Ground:
    """The places that are searched for the password."""

    stack: Stack
    folders: list[Path]
    redis: Redis
    traffic: Traffic
    models: ModelServer

    def processes(self, *sessions: Terminal) -> set[int]:
        """Every running process of ours: servers, daemon, holders, and their descendants."""
        holders = {
            pid
            for session in sessions
            if (pid := self.stack.holder_pid(session.session_id)) is not None
        }
        ours = holders | {*self.stack.process_ids(), *self.stack.daemon_pids()}
        return ours | {below for pid in ours for below in descendants_of(pid)}


@pytest.fixture(params=["sqlite", "postgresql"])
def ground(
    request: pytest.FixtureRequest,
    sudoer: Account,
    models: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Ground]:
    """A stack on SQLite or PostgreSQL, with Redis.

    Its daemon runs as a user who has to give sudo a password. Its servers start as an operator
    starts them, because the system shows others how a process was started.
    """
    requires("sudo", "redis-server")
    monkeypatch.setattr(Stack, "IS_WARM", False)
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_APPROVALS": "auto",
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
    }
    with ExitStack() as on_exit:
        if request.param == "sqlite":
            redis = Redis().start()
            on_exit.callback(redis.remove)
            traffic = on_exit.enter_context(monitored(redis))
            stack = on_exit.enter_context(
                running_stack(
                    account=sudoer, server_environment={**environment, "REDIS_URL": redis.url}
                )
            )
            yield Ground(stack, [stack.root, redis.root], redis, traffic, models)
        else:
            backends = on_exit.enter_context(running_backends())
            traffic = on_exit.enter_context(monitored(backends.redis))
            stack = on_exit.enter_context(
                running_cluster(account=sudoer, backends=backends, server_environment=environment)
            )
            yield Ground(
                stack,
                [stack.root, backends.redis.root, backends.postgres.root],
                backends.redis,
                traffic,
                models,
            )


def _wanted(word: str) -> list[bytes]:
    """A word in every form in which it may be expected."""
    plain = word.encode()
    return sorted({*forms_of(plain), plain.hex().encode(), plain[::-1]})


def _files_with(folders: list[Path], *words: str) -> set[str]:
    forms = [form for word in words for form in _wanted(word)]
    wanted = re.compile(b"|".join(map(re.escape, forms)))
    return {
        f"{folder.name}/{path.relative_to(folder)}"
        for folder in folders
        for path, content in contents_below(folder)
        if wanted.search(content)
    }


def _is_in(word: str, text: str | bytes) -> bool:
    data = text.encode() if isinstance(text, str) else text
    return any(form in data for form in _wanted(word))


async def _leaky_turn(caller: Caller) -> Terminal:
    """A program that has shown its password and still runs."""
    session = await caller.start(LEAKY)
    await session.send(f"{CANARY}\n")
    assert session.kind == "secret"
    await session.send(secret="sudo")
    await session.until_output("Done?", 60)
    assert "<******>" in session.seen
    return session


async def _asked_turn(
    stack: Stack, caller: Caller, browser: httpx2.Client, *secrets: str
) -> tuple[Terminal, ConsoleSocket]:
    """A program whose password and second factor a person has typed, and a page that watched."""
    session = await caller.start(TWO_FACTORS)
    async with _watched(stack, browser, session) as page:
        await session.send(f"{CANARY}\n")
        for secret in secrets:
            await _typed_by_a_person(session, browser, secret)
        assert session.seen.count("<******>") == len(secrets)
        await await_until(lambda: "Done?" in _text_of(page), RUN_SECONDS, "the page to show it")
    return session, page


async def _typed_by_a_person(session: Terminal, browser: httpx2.Client, secret: str) -> None:
    """Ask for a person, who types the secret on the page that the caller's answer names."""
    caller = session.caller
    name = {"session_id": session.session_id, "ask_person": f"the password, {CANARY}"}
    refusals = [
        await caller.refusal("send_command_input", **name, wait_seconds=0) for _ in range(2)
    ]
    assert refusals[0] == refusals[1], "one prompt is one event"
    assert [refused["code"] for refused in refusals] == ["PERSON_PENDING"] * 2
    link = refusals[0]["error"].split()[-1]
    waiting = asyncio.create_task(session.send(ask_person=name["ask_person"], wait_seconds=30))
    page = await asyncio.to_thread(browser.get, link)
    assert CANARY in page.text
    fields = {
        "typed": secret,
        "input_seq": page.text.split('name="input_seq" value="')[1].split('"')[0],
        "csrfmiddlewaretoken": browser.cookies["csrftoken"],
    }
    typed = await asyncio.to_thread(browser.post, str(page.url.path), data=fields)
    assert "It is typed." in typed.text
    # Nobody types a second time at a prompt that is answered.
    again = await asyncio.to_thread(browser.post, str(page.url.path), data=fields)
    assert "PROMPT_GONE" in again.text
    await waiting


@asynccontextmanager
async def _watched(
    stack: Stack, browser: httpx2.Client, session: Terminal
) -> AsyncIterator[ConsoleSocket]:
    """A page that shows the board and the session live. It keeps every frame."""
    async with console_socket(stack.port, browser.cookies["sessionid"]) as page:
        await page.send("watch_board")
        await page.send("watch_session", session_id=session.session_id, offset=0)

        async def look() -> None:
            while True:
                shown = await page.receive("output")
                await page.send("seen", offset=shown["offset"] + len(shown["data"]))

        looking = asyncio.create_task(look())
        yield page
        looking.cancel()


def _text_of(page: ConsoleSocket) -> str:
    output = b"".join(shown["data"] for shown in page.heard if shown["type"] == "output")
    others = [shown for shown in page.heard if shown["type"] != "output"]
    return json.dumps(others, ensure_ascii=False) + output.decode(errors="replace")


async def _sudo_turn(caller: Caller) -> Terminal:
    session = await caller.start("sudo -k id")
    assert (session.result["state"], session.kind) == ("awaiting_input", "secret")
    await session.send(secret="sudo")
    await session.until("exited", 60)
    assert "uid=0(root)" in session.seen
    return session


def _agent_turn(ground: Ground) -> RunRows:
    """A finished agent run that has answered sudo by the secret's name."""

    def answers_sudo(seen: Seen) -> Says:
        if run.results[0]["prompt"]["kind"] != "secret":
            return done("sudo did not ask", success=False)
        return call(
            "send_command_input",
            session_id=run.results[0]["session_id"],
            secret="sudo",
            wait_seconds=30,
        )

    begins = call("start_interactive_command", command="sudo -k id", wait_seconds=30)
    ground.models.scripts["sudo"] = in_turn(
        begins, answers_sudo, lambda seen: done(success="uid=0" in seen.last)
    )
    with submitter(ground.stack) as runs:
        run = runs.submit("openai:sudo", task=f"become root, {CANARY}")
        wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert (run.end, bool(run.run["is_successful"])) == (("finished", "done"), True)
    return run


def _told_of_processes(pids: set[int]) -> str:
    """The facts about processes that the kernel shows to every process of their user."""
    told = []
    for pid in pids:
        for name in ("cmdline", "environ", "comm", "stat", "limits"):
            with suppress(OSError):
                told.append(Path(f"/proc/{pid}/{name}").read_bytes().decode(errors="replace"))
    return "\n".join(told)


async def _everything_tools_say(caller: Caller, *sessions: Terminal) -> str:
    answers: list[Any] = [await caller.call("list_sessions"), await caller.call("list_controllers")]
    for session in sessions:
        name = {"session_id": session.session_id}
        answers += [session.turns, await caller.call("get_session", **name)]
        answers += [
            await caller.call("read_session_output", **name, offset=0),
            await caller.call("read_session_output", **name, view="screen"),
        ]
    answers.append(
        await caller.refusal(
            "send_command_input", session_id=sessions[-1].session_id, secret="sudo"
        )
    )
    answers.append(
        await caller.refusal(
            "send_command_input", session_id=sessions[0].session_id, secret="unknown"
        )
    )
    return json.dumps(answers, ensure_ascii=False)


@asynccontextmanager
async def _signed_in(stack: Stack) -> AsyncIterator[httpx2.Client]:
    """A browser in which the superuser is signed in."""
    password = json.loads(
        manage_well(stack, "bootstrap", "--url", f"http://127.0.0.1:{stack.port}").splitlines()[0]
    )["admin_password"]
    with httpx2.Client(
        base_url=f"http://127.0.0.1:{stack.port}", follow_redirects=True, timeout=120
    ) as browser:
        form = browser.get("/admin/login/")
        fields = {
            "username": "admin",
            "password": password,
            "csrfmiddlewaretoken": browser.cookies["csrftoken"],
            "next": "/admin/",
        }
        assert "Log in" in form.text
        assert browser.post("/admin/login/", data=fields).status_code == 200
        yield browser


def _every_page(browser: httpx2.Client, limit: int = 120) -> dict[str, str]:
    """The pages of the admin, link by link, and some of the console, as its superuser sees them."""
    pages: dict[str, str] = {}
    todo = ["/attention/", "/timeline/", "/admin/"]
    while todo and len(pages) < limit:
        url = todo.pop(0)
        page = browser.get(url)
        pages[url] = page.text
        links = re.findall(r'href="((?:/admin/|\?|\.\./|[\w-]+/)[^"#]*)"', page.text)
        found = [
            str(page.url.join(link).raw_path, "ascii")
            for link in links
            if "logout" not in link and "/jsi18n" not in link
        ]
        todo += [
            link
            for link in dict.fromkeys(found)
            if link not in pages and link not in todo and "?" not in link
        ]
    return pages


@pytest.mark.timeout(600)
async def test_secrets_by_name_and_by_a_person_are_kept_and_shown_nowhere(
    ground: Ground, sudoer: Account
) -> None:
    stack, password = ground.stack, sudoer.password
    said = manage_well(
        stack, "set_secret", "first", "sudo", "--controller", "host", stdin=password + "\n"
    )
    async with stack.caller() as caller, _signed_in(stack) as browser:
        asked, page = await _asked_turn(stack, caller, browser, password, FACTOR)
        leaky = await _leaky_turn(caller)
        sudo = await _sudo_turn(caller)
        answers = await _everything_tools_say(caller, asked, leaky, sudo)
        run = await asyncio.to_thread(_agent_turn, ground)
        kernel = _told_of_processes(ground.processes(leaky))
        holder_limits = _told_of_processes(
            {stack.holder_pid(leaky.session_id) or 0, *stack.daemon_pids()}
        )
        # One session still runs here, so its ring and its directory exist.
        found = _files_with(ground.folders, password, FACTOR)
        control = _files_with(ground.folders, CANARY)
        pages = await asyncio.to_thread(_every_page, browser)
        await leaky.send("\n")
    ground.redis.ask(f"PUBLISH control {CANARY}")
    assert found == set()
    assert _files_with(ground.folders, password, FACTOR) == set()
    assert not [url for url, text in pages.items() if _is_in(password, text)]
    assert not [url for url, text in pages.items() if _is_in(FACTOR, text)]
    exported = manage_well(stack, "export_audit")
    figures = httpx2.get(
        f"http://127.0.0.1:{getattr(stack, 'worker_ports', [stack.port])[0]}/metrics", timeout=120
    ).text
    agent = json.dumps(
        [
            run.run,
            run.steps,
            run.approvals,
            [vars(seen) for seen in ground.models.requests["sudo"]],
        ],
        default=str,
    )
    shown = _text_of(page)
    for place in (said, answers, ground.traffic.text, kernel, exported, figures, agent, shown):
        assert not _is_in(password, place)
        assert not _is_in(FACTOR, place)
    sizes = re.findall(r"^Max core file size +(\S+)", holder_limits, re.MULTILINE)
    assert len(sizes) >= 2
    assert set(sizes) == {"0"}, "no process that had it can leave its memory in a file"
    # The word that was typed openly is found in every place, so the searches work.
    assert any("/data/db.sqlite3" in name or "-postgres-" in name for name in control)
    for place in (answers, kernel, exported, agent, shown):
        assert _is_in(CANARY, place)
    assert "holdline_" in figures
    assert _is_in(CANARY, ground.traffic.text)
    assert any(_is_in(CANARY, text) for text in pages.values())
    assert any("/secret/" in url and "change" in url for url in pages)
    (stack.state_dir / "control").write_text(f"x{CANARY}x")
    with (stack.root / "daemon.log").open("a") as log:
        log.write(json.dumps({"event": CANARY}))
    in_the_end = _files_with(ground.folders, CANARY)
    assert {f"{stack.root.name}/host/control", f"{stack.root.name}/daemon.log"} <= in_the_end
