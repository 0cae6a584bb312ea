"""Read-eval-print loops: the turn ends at the loop's own prompt."""

import pytest

from tests.support.accounts import requires
from tests.support.stack import Stack


@pytest.mark.requirement(
    "S3.R1.1",
    "S3.R1.4",
    "S3.R2.1",
    "S3.R2.4",
    "S3.R3.1",
    "S3.R3.5",
    "S3.D3.1",
    "S3.D3.2",
    "S1.R2.1",
)
async def test_three_turns_of_the_python_loop_and_its_exit_code(stack: Stack) -> None:
    requires("python3")
    async with stack.caller() as caller:
        repl = await caller.start("python3")
        assert repl.result["state"] == "awaiting_input"
        assert repl.result["prompt"]["text"] == ">>> "
        assert (repl.kind, repl.evidence) == ("line", "kernel")

        await repl.send("x = 6\n")
        assert repl.result["state"] == "awaiting_input"
        await repl.send("x * 7\n")
        assert "42" in repl.result["output"]
        await repl.send("import time; time.sleep(0.7); print('slept')\n")
        assert "slept" in repl.result["output"]
        assert repl.result["output"].rstrip().endswith(">>>")

        await repl.send("exit()\n")
        assert (repl.result["state"], repl.result["exit_code"], repl.result["end_reason"]) == (
            "exited",
            0,
            "exited",
        )


async def test_an_interrupted_computation_returns_to_the_prompt(stack: Stack) -> None:
    requires("python3")
    async with stack.caller() as caller, caller.terminal("python3 -q") as repl:
        await repl.send("while True: pass\n\n", wait_seconds=0.5)
        assert repl.result["state"] == "running"
        await repl.keys("ctrl-c")
        assert "KeyboardInterrupt" in repl.result["output"]
        assert repl.result["state"] == "awaiting_input"


async def test_gdb_evaluates_and_quits(stack: Stack) -> None:
    requires("gdb")
    async with stack.caller() as caller:
        debugger = await caller.start("gdb -q -nx")
        assert debugger.result["prompt"]["text"].endswith("(gdb) ")
        await debugger.send("print 6 * 7\n")
        assert "= 42" in debugger.result["output"]
        await debugger.send("quit\n")
        assert (debugger.result["state"], debugger.result["exit_code"]) == ("exited", 0)
