"""Silent programs, and programs with question-like output, do not count as waiting."""

import shlex
import sys
import time
from pathlib import Path

import pytest

from tests.support.stack import Stack

_SILENT_SECONDS = 20.0
_PYTHON = "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def _python(source: str) -> str:
    return f"{_PYTHON} -c {shlex.quote(source)}"


async def test_a_program_that_sleeps_and_then_asks_is_not_waiting_before_it_asks(
    stack: Stack, tmp_path: Path
) -> None:
    stamp = tmp_path / "asked_at"
    asks = _python(
        "import pathlib, time\n"
        "time.sleep(3)\n"
        f"pathlib.Path({str(stamp)!r}).write_text(str(time.monotonic()))\n"
        "print('hello', input('Ready? '))"
    )
    async with stack.caller() as caller, caller.terminal(asks, wait_seconds=0.5) as session:
        # On a busy machine the calls may take as long as the sleep. The point is that no answer
        # says that the program asks before it does.
        assert session.result["state"] == "running" or stamp.exists()
        await session.send(wait_seconds=1)
        assert session.result["state"] == "running" or stamp.exists()
        await session.until("awaiting_input")
        answered_at = time.monotonic()
        assert session.result["state"] == "awaiting_input"
        assert float(stamp.read_text()) <= answered_at
        assert (session.kind, session.evidence, session.result["prompt"]["text"]) == (
            "line",
            "kernel",
            "Ready? ",
        )
        await session.send("ada\n")
        assert "hello ada" in session.result["output"]


async def test_a_program_that_computes_silently_is_never_waiting(stack: Stack) -> None:
    computes = _python(
        "import time\nprint('Password: ', end='', flush=True)\n"
        f"end = time.monotonic() + {_SILENT_SECONDS}\nwhile time.monotonic() < end: pass"
    )
    async with stack.caller() as caller, caller.terminal(computes, wait_seconds=1) as session:
        deadline = time.monotonic() + 2 * _SILENT_SECONDS
        while session.result["state"] != "exited" and time.monotonic() < deadline:
            assert session.result["state"] == "running"
            await session.send(wait_seconds=2)
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)
        assert session.seen == "Password: "


@pytest.mark.requirement("S3.C1.5")
@pytest.mark.parametrize(
    "command",
    [
        "bash -c \"printf 'Continue? [y/N] '; sleep 3\"",
        "bash -c \"stty -echo; printf 'Password: '; sleep 3; stty echo\"",
        "bash -c '(sleep 3; echo x) | grep x | sort'",
        "bash -c \"printf '$ '; tail -f /dev/null & sleep 3; kill $!\"",
    ],
)
async def test_text_that_looks_like_a_question_is_not_taken_for_one(
    stack: Stack, command: str
) -> None:
    async with stack.caller() as caller, caller.terminal(command, wait_seconds=0) as session:
        while session.result["state"] != "exited":
            assert session.result["state"] == "running"
            await session.send(wait_seconds=2.2)


async def test_a_program_that_pauses_between_prints_ends_its_turn_at_its_prompt(
    stack: Stack,
) -> None:
    async with stack.caller() as caller:
        session = await caller.start(
            """bash -c 'for i in 1 2 3 4; do echo -n "part $i? "; sleep 0.4; done; """
            """echo; read -p "Now: " x'"""
        )
        assert session.result["state"] == "awaiting_input"
        assert session.result["prompt"]["text"] == "Now: "
        assert "part 4?" in session.result["output"]
        await session.send("\n")
        assert session.result["state"] == "exited"


@pytest.mark.requirement("S3.D1.4", "S3.D1.5")
async def test_a_pattern_ends_the_wait_before_the_program_asks(stack: Stack) -> None:
    async with (
        stack.caller() as caller,
        caller.terminal(
            "bash -c 'echo started; sleep 60'", wait_for="start(ed)", wait_seconds=20
        ) as session,
    ):
        assert session.result["state"] == "running"
        assert "started" in session.result["output"]


async def test_a_wait_that_is_shorter_than_a_look_is_told(stack: Stack) -> None:
    # The threads make one look at the program take longer than one wait for the keyboard.
    polls = _python(
        "import os, select, sys, threading, tty\n"
        "tty.setraw(0)\n"
        "stop = threading.Event()\n"
        "for _ in range(300): threading.Thread(target=stop.wait).start()\n"
        "print('Go on? ', end='', flush=True)\n"
        "while not select.select([0], [], [], 0.002)[0]: pass\n"
        "print('got', os.read(0, 9), end='\\r\\n', flush=True)\n"
        "stop.set()"
    )
    async with stack.caller() as caller, caller.terminal(polls, wait_seconds=20) as session:
        assert (session.result["state"], session.evidence) == ("awaiting_input", "kernel+quiet")
        await session.send("y")
        await session.until("exited")
        assert "got b'y'" in session.seen
