"""Sessions of every kind at once on one host: each gets its own output, whole and unmixed."""

import asyncio
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.mcp.client import Caller, ToolRefusedError
from tests.support.stack import Stack
from tests.support.waiting import await_until

Kind = Callable[[Caller, str, str], Coroutine[Any, Any, tuple[str, str]]]

EACH_KIND = 16
LINES = 400
LONG_WAIT_MS = 20_000
# A program waits until all sixty-four run, which takes a busy machine more than a minute.
JOB_SECONDS = 120


def _printing(name: str) -> str:
    """Return a program that waits for all others, then prints its name in lines on both streams."""
    return (
        f"until [ -e $GO ]; do sleep 0.05; done; for i in $(seq {LINES}); do echo {name} $i; "
        f"done; echo {name} bad >&2"
    )


def _lines(name: str) -> str:
    return "".join(f"{name} {number}\n" for number in range(1, LINES + 1))


async def _one_shot(caller: Caller, name: str, go: str) -> tuple[str, str]:
    result = await caller.call(
        "execute_command", command=_printing(name).replace("$GO", go), timeout_seconds=45
    )
    assert result["return_code"] == 0, result
    return result["stdout"], result["stderr"]


async def _confirmed(caller: Caller, **request: str) -> dict[str, Any]:
    """Start a command, and repeat the call until the start is confirmed.

    A busy machine may need longer for sixty-four starts than one call waits. A repeated call starts
    nothing twice.
    """
    while True:
        try:
            return await caller.call("start_command", **request)
        except ToolRefusedError as error:
            if error.code != "START_UNCONFIRMED":
                raise


async def _background(caller: Caller, name: str, go: str) -> tuple[str, str]:
    started = await _confirmed(
        caller, command=_printing(name).replace("$GO", go), requestId=str(uuid.uuid4())
    )
    out = err = ""
    while True:
        answer = await caller.call(
            "read_output", sessionId=started["sessionId"], timeout=LONG_WAIT_MS
        )
        out, err = out + answer["stdout"], err + answer["stderr"]
        if not answer["isActive"] and not answer["hasMore"]:
            assert answer["exitCode"] == 0
            return out, err


async def _job(caller: Caller, name: str, go: str) -> tuple[str, str]:
    token = (
        await caller.call(
            "run_command", command=_printing(name).replace("$GO", go), timeout=JOB_SECONDS
        )
    )["token"]
    answer: dict[str, Any] = {}

    async def is_over() -> bool:
        answer.update(await caller.call("query_command_status", token=token))
        return bool(answer["status"] == "completed")

    await await_until(is_over, JOB_SECONDS, "the job to complete")
    return answer["stdout"], answer["stderr"]


async def _interactive(caller: Caller, name: str, go: str) -> tuple[str, str]:
    """Run on a terminal, where both streams are one."""
    async with caller.terminal(
        f"bash -c '{_printing(name).replace('$GO', go)}; read -p \"over? \" x'", wait_seconds=30
    ) as session:
        await session.until("awaiting_input", 60)
        await session.send(f"yes {name}\n")
        await session.until("exited")
        whole = await caller.call(
            "read_session_output", session_id=session.session_id, offset=0, max_bytes=262_144
        )
    shown = str(whole["output"])
    assert shown.endswith(f"over? yes {name}\n")
    out, _, rest = shown.partition(f"{name} bad\n")
    return out, f"{name} bad\n" if rest else ""


@pytest.mark.requirement("S1.R2.1", "S4.R1.3")
async def test_sixty_four_sessions_of_mixed_kinds_have_each_its_own_output(
    stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> None:
    go = tmp_path_factory.mktemp("crowd") / "go"
    before = len(stack.session_ids_on_host())
    async with stack.caller() as first, stack.caller() as second:
        outputs: dict[str, tuple[str, str]] = {}
        failed: list[BaseException] = []

        async def run(number: int, kind: Kind) -> None:
            name = f"{kind.__name__[1:]}-{number:02}"
            try:
                outputs[name] = await kind((first, second)[number % 2], name, str(go))
            except BaseException as error:
                failed.append(error)
                raise

        async def are_running(total: int) -> None:
            everybody = f"{total} sessions to run at the same time"
            await await_until(
                lambda: failed or len(stack.session_ids_on_host()) - before >= total, 120, everybody
            )
            states = "SELECT count(*) FROM projects_commandsession WHERE state = 'RUNNING'"
            await await_until(
                lambda: failed or stack.database.rows(states)[0][0] >= total, 120, everybody
            )
            assert not outputs, "they wait for the file"

        async with asyncio.TaskGroup() as group:
            try:
                # One-shot commands come last: their time is limited, and a busy machine may need
                # long to start all others.
                for kinds in ((_background, _job, _interactive), (_one_shot,)):
                    for number in range(EACH_KIND):
                        for kind in kinds:
                            group.create_task(run(number, kind))
                    await are_running(EACH_KIND * (3 if _one_shot not in kinds else 4))
            finally:
                go.touch()
    assert {
        name: output
        for name, output in outputs.items()
        if output != (_lines(name), f"{name} bad\n")
    } == {}
    assert len(outputs) == EACH_KIND * 4
