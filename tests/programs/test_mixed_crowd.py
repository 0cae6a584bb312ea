"""Sessions of every kind at once on one host: each has its own output, none is mixed up, none is lost."""

import asyncio
from typing import Any

import pytest

from tests.support.mcp_client import Caller
from tests.support.stack import Stack
from tests.support.waiting import await_until

EACH_KIND = 16
LINES = 400
LONG_WAIT_MS = 20_000


def _printing(name: str) -> str:
    """A program that waits until all are there, then prints lines with its own name on both streams."""
    return f"until [ -e $GO ]; do sleep 0.05; done; for i in $(seq {LINES}); do echo {name} $i; done; echo {name} bad >&2"


def _lines(name: str) -> str:
    return "".join(f"{name} {number}\n" for number in range(1, LINES + 1))


async def _one_shot(caller: Caller, name: str, go: str) -> tuple[str, str]:
    result = await caller.call("execute_command", command=_printing(name).replace("$GO", go), timeout_seconds=45)
    assert result["return_code"] == 0, result
    return result["stdout"], result["stderr"]


async def _background(caller: Caller, name: str, go: str) -> tuple[str, str]:
    started = await caller.call("start_command", command=_printing(name).replace("$GO", go))
    out = err = ""
    while True:
        answer = await caller.call("read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS)
        out, err = out + answer["stdout"], err + answer["stderr"]
        if not answer["isActive"] and not answer["hasMore"]:
            assert answer["exitCode"] == 0
            return out, err


async def _job(caller: Caller, name: str, go: str) -> tuple[str, str]:
    token = (await caller.call("run_command", command=_printing(name).replace("$GO", go), timeout=120))["token"]
    answer: dict[str, Any] = {}

    async def is_over() -> bool:
        answer.update(await caller.call("query_command_status", token=token))
        return bool(answer["status"] == "completed")

    await await_until(is_over, 60, "the job to complete")
    return answer["stdout"], answer["stderr"]


async def _interactive(caller: Caller, name: str, go: str) -> tuple[str, str]:
    """On a terminal both streams are one."""
    async with caller.terminal(f"bash -c '{_printing(name).replace('$GO', go)}; read -p \"over? \" x'", wait_seconds=30) as session:
        await session.until("awaiting_input", 60)
        await session.send(f"yes {name}\n")
        await session.until("exited")
        whole = await caller.call("read_session_output", session_id=session.session_id, offset=0, max_bytes=262_144)
    shown = str(whole["output"])
    assert shown.endswith(f"over? yes {name}\n")
    out, _, rest = shown.partition(f"{name} bad\n")
    return out, f"{name} bad\n" if rest else ""


@pytest.mark.requirement("S1.R2.1", "S4.R1.3")
async def test_sixty_four_sessions_of_mixed_kinds_have_each_its_own_output(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> None:
    go = tmp_path_factory.mktemp("crowd") / "go"
    before = len(stack.session_ids_on_host())
    kinds = (_one_shot, _background, _job, _interactive)
    async with stack.caller() as first, stack.caller() as second:

        async def all_at_once() -> dict[str, tuple[str, str]]:
            names = [(kind, f"{kind.__name__[1:]}-{number:02}") for number in range(EACH_KIND) for kind in kinds]
            outputs = await asyncio.gather(*(kind((first, second)[i % 2], name, str(go)) for i, (kind, name) in enumerate(names)))
            return dict(zip((name for _, name in names), outputs, strict=True))

        running = asyncio.create_task(all_at_once())
        try:
            total = EACH_KIND * len(kinds)
            everybody = "all sessions to run at the same time"
            await await_until(lambda: running.done() or len(stack.session_ids_on_host()) - before >= total, 60, everybody)
            states = "SELECT count(*) FROM projects_commandsession WHERE state = 'RUNNING'"
            await await_until(lambda: running.done() or stack.database.rows(states)[0][0] >= total, 60, everybody)
            assert not running.done(), "they wait for the file"
        finally:
            go.touch()
            outputs = await running
    assert {name: output for name, output in outputs.items() if output != (_lines(name), f"{name} bad\n")} == {}
    assert len(outputs) == total
