"""Two real daemons with one identity: a program that one was sent is not started by the other."""

import asyncio
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.mcp.client import connect
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.fault


@pytest.fixture
def stack() -> Iterator[Stack]:
    with running_stack() as started:
        yield started


@contextmanager
def _copied_daemon(stack: Stack, state: Path) -> Iterator[None]:
    """A daemon on a copy of the host's state directory, connected in the place of the true one."""
    shutil.copytree(stack.state_dir, state, ignore=lambda *_: ["sessions"], symlinks=True)
    name = stack.provisioned.controller
    epoch = stack.database.controller_epoch(name)
    command, environment = stack.daemon_command(state_dir=state)
    with (stack.root / "copy.log").open("ab") as log:
        copy = subprocess.Popen(
            command,
            cwd=stack.root,
            env=environment,
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
    try:
        wait_until(lambda: stack.database.controller_epoch(name) > epoch, 60, "the copy's HELLO")
        yield
    finally:
        copy.kill()
        copy.wait()


async def test_a_start_without_an_answer_waits_for_the_daemon_it_was_sent(stack: Stack) -> None:
    begun = stack.root / "begun"
    assert stack.daemon is not None
    async with connect(stack.url, stack.provisioned.token) as caller:
        stack.daemon.send_signal(signal.SIGSTOP)
        first = asyncio.create_task(
            caller.call("start_interactive_command", command=f"bash -c 'echo one >> {begun}; cat'")
        )
        sent = "SELECT id FROM projects_commandsession WHERE state = 'SENT'"
        await await_until(lambda: stack.database.rows(sent), 60, "the START to be sent")
        with _copied_daemon(stack, stack.root / "copy"):
            # Commands are sent in their order: what the copy is sent next, it is sent after this.
            other = await caller.call("execute_command", command="true")
            assert other["return_code"] == 0
            assert not begun.exists()
        stack.daemon.send_signal(signal.SIGCONT)
        answer = await first
        assert stack.database.state(answer["session_id"]) == "RUNNING"
        assert begun.read_text() == "one\n"
