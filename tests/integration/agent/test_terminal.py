"""``run_agent`` as a person has it: on a real terminal, with questions and Ctrl-C."""

import re
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pytest

from tests.support.agents.commands import RunRows
from tests.support.agents.fixtures import RUN_SECONDS
from tests.support.agents.model_server import ModelServer, Says, call, done, in_turn
from tests.support.management import manage
from tests.support.stack import PROJECT_ROOT, Stack
from tests.support.waiting import wait_until

_ID = re.compile(r"run ([0-9a-f-]{36})")
Terminal = Callable[..., "pexpect.spawn[str]"]


@pytest.fixture
def terminal(agents: Stack) -> Iterator[Terminal]:
    """Starts ``run_agent`` on a terminal of its own."""
    started: list[pexpect.spawn[str]] = []

    def start(*arguments: str) -> "pexpect.spawn[str]":
        command = ["manage.py", "run_agent", *arguments]
        environment = {**agents.server_environment(), "TERM": "xterm-256color"}
        child = pexpect.spawn(
            sys.executable,
            command,
            cwd=str(PROJECT_ROOT),
            env=environment,
            encoding="utf-8",
            timeout=RUN_SECONDS,
            dimensions=(50, 200),
        )
        started.append(child)
        return child

    yield start
    for child in started:
        child.close(force=True)


def ended(child: "pexpect.spawn[str]") -> int | None:
    """The exit code; everything up to the end is in ``before``."""
    child.expect(pexpect.EOF)
    child.close()
    return child.exitstatus


def run_of(agents: Stack, child: "pexpect.spawn[str]") -> RunRows:
    """The rows of the run it follows."""
    child.expect(_ID)
    assert child.match is not None
    return RunRows(agents, str(child.match.group(1)))


def test_a_run_is_followed_in_colours_while_the_model_still_talks(
    models: ModelServer, terminal: Terminal
) -> None:
    go_on = threading.Event()
    looks = Says(
        "I look around first.",
        call("execute_command", command="echo seen; printf '\\033]0;owned\\007'").calls,
        go_on=go_on,
    )
    models.scripts["followed"] = in_turn(looks, done("not to be done", success=False))
    child = terminal("--project", "first", "--model", "openai:followed", "look around")
    child.expect_exact("I look around first.")
    go_on.set()
    child.expect_exact("\x1b[1;36m> execute_command echo seen")
    child.expect_exact("\x1b[2m  | seen\x1b[0m")
    child.expect_exact("\x1b[32m  -> ended, exit code 0\x1b[0m")
    assert ended(child) == 1
    assert child.before is not None
    assert "finished (gave_up)" in child.before
    assert "\x1b]0;" not in child.before


def test_ctrl_c_asks_whether_to_detach_or_to_stop(
    agents: Stack, models: ModelServer, terminal: Terminal, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    waits = call(
        "start_interactive_command", command=f"bash -c 'touch {begun}; sleep 1000'", wait_seconds=30
    )
    models.scripts["interrupted"] = in_turn(waits)
    child = terminal("--project", "first", "--model", "openai:interrupted", "wait")
    run = run_of(agents, child)
    wait_until(begun.exists, RUN_SECONDS, "the program to run")
    child.sendintr()
    child.expect_exact("[d]etach, [s]top the run, or enter to go on: ")
    child.sendline("")
    child.expect_exact("following the run again")
    child.sendintr()
    child.expect_exact("[d]etach, [s]top the run, or enter to go on: ")
    child.sendline("d")
    child.expect_exact(f"it goes on; manage.py run_agent --follow {run.run_id}")
    assert ended(child) == 130
    assert run.run["state"] == "running"

    back = terminal("--follow", run.run_id[:8])
    back.expect_exact("> start_interactive_command")
    back.sendintr()
    back.expect_exact("enter to go on: ")
    back.sendline("s")
    back.expect_exact("stopped (stopped)")
    assert ended(back) == 3
    assert run.end == ("stopped", "stopped")


def test_what_a_run_asks_is_answered_at_the_terminal_or_elsewhere(
    agents: Stack, models: ModelServer, terminal: Terminal, tmp_path: Path
) -> None:
    files = [tmp_path / name for name in ("kept", "gone", "also-gone")]
    for file in files:
        file.touch()
    models.scripts["asks"] = in_turn(
        *(call("execute_command", command=f"rm {file}") for file in files), done()
    )
    child = terminal(
        "--project", "first", "--approvals", "ask-risky", "--model", "anthropic:asks", "tidy up"
    )
    run = run_of(agents, child)
    child.expect(r"asks for approval #\d+: destructive: execute_command rm .*kept")
    child.expect_exact("approve? ")
    child.sendline("")
    child.expect_exact("approve? ")
    child.sendline("not that one")
    child.expect_exact("DENIED_BY_OPERATOR")
    child.expect_exact("approve? ")
    child.send("half a li")
    manage(agents, "answer_approval", str(run.approvals[1]["id"]), "--approve")
    child.expect(r"approved by cli:")
    child.expect_exact("approve? ")
    child.sendline("y")
    assert ended(child) == 0
    assert [file.exists() for file in files] == [True, False, False]
    assert [(asked["answer"], asked["reason"]) for asked in run.approvals] == [
        *(("denied", "not that one"), ("approved", ""), ("approved", ""))
    ]


def test_a_run_carried_out_here_is_left_to_the_server(
    agents: Stack, models: ModelServer, terminal: Terminal
) -> None:
    go_on = threading.Event()
    models.scripts["here"] = in_turn(
        Says("I think.", call("list_sessions").calls, go_on=go_on), done()
    )
    child = terminal("--here", "--project", "first", "--model", "openai:here", "think")
    run = run_of(agents, child)
    child.expect_exact("I think.")
    child.sendintr()
    child.expect_exact("enter to go on: ")
    child.sendline("d")
    child.expect_exact("the server carries it on")
    assert ended(child) == 130
    go_on.set()
    wait_until(lambda: run.is_over, RUN_SECONDS, "the server to go on with it")
    assert run.end == ("finished", "done")
