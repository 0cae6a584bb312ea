"""Keys send signals and the end of input, and a resize reaches the program."""

import pytest

from tests.support.mcp.client import Terminal
from tests.support.processes import command_line, status_field
from tests.support.stack import Stack
from tests.support.waiting import await_until

_SHELL = "bash --norc --noprofile -i"


@pytest.mark.requirement("S4.R3.1", "S4.R3.3")
async def test_ctrl_c_interrupts_the_program(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("sleep 300", wait_seconds=0.3)
        assert session.result["state"] == "running"
        await session.keys("ctrl-c")
        assert session.result["state"] == "exited"
        assert (
            session.result["exit_code"],
            session.result["signal"],
            session.result["end_reason"],
        ) == (None, "SIGINT", "exited")


async def test_ctrl_d_ends_the_input(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("cat")
        await session.send("hello\n")
        assert session.result["output"].splitlines() == ["hello", "hello"]
        assert session.result["state"] == "awaiting_input"
        await session.keys("ctrl-d")
        assert (session.result["state"], session.result["exit_code"]) == ("exited", 0)


async def test_ctrl_z_stops_a_job_and_fg_takes_it_back(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal(_SHELL) as shell:
        assert shell.kind == "shell"
        await shell.send("cat\n")
        assert (shell.result["state"], shell.kind) == ("awaiting_input", "line")
        await shell.send("first\n")
        await shell.keys("ctrl-z")
        assert "Stopped" in shell.result["output"]
        assert (shell.result["state"], shell.kind) == ("awaiting_input", "shell")
        await shell.send("fg\n")
        assert (shell.result["state"], shell.kind) == ("awaiting_input", "line")
        await shell.send("second\n")
        assert shell.result["output"].splitlines() == ["second", "second"]
        await shell.keys("ctrl-d")
        assert shell.kind == "shell"
        await shell.send("exit 3\n")
        assert (shell.result["state"], shell.result["exit_code"]) == ("exited", 3)


async def test_ctrl_d_behind_typed_text_leaves_the_prompt_of_the_shell(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal(_SHELL) as shell:
        await shell.send("echo typed")
        assert shell.result["hint"].startswith("No Enter was typed after your text.")
        await shell.keys("ctrl-d")
        assert (shell.result["state"], shell.kind) == ("awaiting_input", "shell")
        assert shell.result["prompt"]["text"].endswith("echo typed")
        assert "No Enter" not in shell.result["hint"]
        await shell.keys("enter")
        assert shell.result["output"].splitlines()[1] == "typed"


async def test_a_sleeping_job_is_stopped_resumed_and_interrupted(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal(_SHELL) as shell:
        # A busy shell may not have begun the job when the call returns.
        await shell.send("sleep 300\n", wait_seconds=0.5)
        assert shell.result["state"] == "running"
        await await_until(lambda: _is_asleep(stack, shell), 60, "the job to run")
        await shell.keys("ctrl-z")
        assert "Stopped" in shell.result["output"]
        await shell.send("fg\n", wait_seconds=0.5)
        assert shell.result["state"] == "running"
        await await_until(lambda: _is_asleep(stack, shell), 60, "the job to go on")
        await shell.keys("ctrl-c")
        assert (shell.result["state"], shell.kind) == ("awaiting_input", "shell")


def _is_asleep(stack: Stack, shell: Terminal) -> bool:
    """True if the job runs, and is not stopped."""
    return any(
        command_line(pid) == "sleep 300" and (status_field(pid, "State") or "").startswith("S")
        for pid in stack.program_pids(shell.session_id)
    )


async def test_a_resize_reaches_the_program(stack: Stack) -> None:
    async with stack.caller() as caller:
        shell = await caller.start(
            """bash -c 'trap "stty size" WINCH; stty size; while :; do sleep 0.1; done'""",
            wait_seconds=0.5,
        )
        await shell.until_output("24 120")
        await caller.call("resize_session", session_id=shell.session_id, rows=40, cols=100)
        await shell.until_output("40 100")
        await shell.terminate()


async def test_the_size_can_be_chosen_at_the_start(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("stty size", rows=10, cols=40)
        assert session.result["output"].strip() == "10 40"


@pytest.mark.requirement("S4.R3.5")
async def test_control_sequences_are_kept_raw_and_stripped_from_the_text(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start(r"""bash -c "printf '\033[31mred\033[0m\r\n10%%\r100%%\n'" """)
        assert session.result["state"] == "exited"
        assert session.result["output"] == "red\n100%\n"
        assert b"\x1b[31mred\x1b[0m" in stack.database.transcript(session.session_id)


async def test_text_and_then_keys_are_typed_by_one_call(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("python3 -q")
        turn = await caller.call(
            "send_command_input", session_id=session.session_id, input_text="6 * 7", keys=["enter"]
        )
        assert "42" in turn["output"]
        assert turn["expires_at"] > "20"
        ended = await caller.call(
            "send_command_input",
            session_id=session.session_id,
            input_text="exit(3)",
            keys=["enter"],
        )
        assert ended["exit_code"] == 3
        assert "expires_at" not in ended
        refused = await caller.refusal(
            "send_command_input", session_id=session.session_id, input_text="x"
        )
        assert refused["code"] == "SESSION_ENDED"
        assert "exit code 3" in refused["error"]
