"""run_command and query_command_status: jobs are queried by offset, and kept until they expire."""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.programs.families.jobs import completed, query, shows, submit
from tests.support.mcp.client import Caller
from tests.support.stack import Stack, running_stack
from tests.support.waiting import await_until

# ---- while it runs -------------------------------------------------------------------------------


@pytest.mark.requirement(
    "S4.R1.1", "S4.R1.2", "S4.R1.3", "S4.R1.4", "S4.R2.3", "S4.R5.1", "S4.R5.2"
)
async def test_output_polled_by_offset_grows_in_order(caller: Caller) -> None:
    token = await submit(caller, "for i in $(seq 5); do echo $i; echo e$i >&2; sleep 1; done")
    out = err = ""
    growths = 0
    answer: dict[str, Any] = {"status": "pending", "stdout_length": 0, "stderr_length": 0}

    async def is_over() -> bool:
        nonlocal out, err, growths, answer
        answer = await query(
            caller,
            token,
            stdout_offset=answer["stdout_length"],
            stderr_offset=answer["stderr_length"],
        )
        growths += bool(answer["stdout"]) and answer["status"] == "running"
        out, err = out + answer["stdout"], err + answer["stderr"]
        assert (answer["stdout_length"], answer["stderr_length"]) == (len(out), len(err))
        return bool(answer["status"] == "completed")

    await await_until(is_over, 90, "the job to complete")
    assert (out, err) == ("1\n2\n3\n4\n5\n", "e1\ne2\ne3\ne4\ne5\n")
    assert growths >= 3, "it has to grow while the job runs, and not come at once at its end"
    assert (answer["exit_code"], answer["execution_time"] >= 5) == (0, True)


@pytest.mark.requirement("S4.R2.1", "S4.R2.2", "S4.R1.1", "S4.R1.2")
async def test_a_query_of_a_running_job_has_both_streams_so_far(
    caller: Caller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    token = await submit(
        caller,
        f"echo so far; echo trouble >&2; until [ -e {go} ]; do sleep 0.05; done; echo the rest",
    )

    async def has_both() -> bool:
        answer = await query(caller, token)
        return bool(answer["stdout"] and answer["stderr"])

    await await_until(has_both, 90, "both streams")
    answer = await query(caller, token)
    assert (answer["status"], answer["stdout"], answer["stderr"]) == (
        "running",
        "so far\n",
        "trouble\n",
    )
    assert not {"exit_code", "execution_time"} & set(answer), "these are known once it completed"
    go.touch()
    ended = await completed(caller, token)
    assert (ended["stdout"], ended["stderr"], ended["exit_code"]) == (
        "so far\nthe rest\n",
        "trouble\n",
        0,
    )


@pytest.mark.requirement("S4.R1.4")
async def test_the_mutual_order_of_both_streams_is_kept(
    caller: Caller, stack: Stack, tmp_path: Path
) -> None:
    steps = [tmp_path / str(number) for number in range(5)]
    waits = "; ".join(
        f"until [ -e {step} ]; do sleep 0.02; done; echo o{step.name}; echo e{step.name} >&2"
        for step in steps
    )
    token = await submit(
        caller,
        waits.replace("; echo e", f"; until [ -e {tmp_path}/then ]; do sleep 0.02; done; echo e"),
    )

    expected = b""

    def is_all() -> bool:
        query = "SELECT data FROM projects_outputchunk WHERE session_id = ? ORDER BY seq"
        return (
            b"".join(data for (data,) in stack.database.rows(query, token.replace("-", "")))
            == expected
        )

    for step in steps:
        (tmp_path / "then").unlink(missing_ok=True)
        step.touch()
        expected += f"o{step.name}\n".encode()
        await await_until(is_all, 90, f"exactly {expected!r}")
        (tmp_path / "then").touch()
        expected += f"e{step.name}\n".encode()
        await await_until(is_all, 90, f"exactly {expected!r}")


@pytest.mark.requirement("S4.R2.4")
async def test_a_job_runs_on_while_nobody_can_answer_queries_about_it(tmp_path: Path) -> None:
    """The server is stopped in a query: if queries could block a job, this one would, for ever."""
    steps, go = tmp_path / "steps", tmp_path / "go"
    command = (
        f"until [ -e {go} ]; do sleep 0.02; done; for i in $(seq 200); do echo $i; echo $i >> "
        f"{steps}; done; echo end >> {steps}"
    )
    with running_stack() as stack:
        async with stack.caller() as caller:
            token = await submit(caller, command)
            await await_until(lambda: stack.program_pids(token), 90, "the job to run")
        stack.pause_server()
        try:
            go.touch()
            await await_until(
                lambda: steps.exists() and steps.read_text().endswith("end\n"),
                90,
                "the job to do all its steps",
            )
        finally:
            stack.resume_server()
        async with stack.caller() as caller:
            ended = await completed(caller, token)
            assert ended["stdout"] == "".join(f"{number}\n" for number in range(1, 201))


# ---- offsets -------------------------------------------------------------------------------------


@pytest.mark.requirement("S4.R5.1", "S4.R5.2", "S4.R5.3", "S4.R5.4", "S4.R4.4")
async def test_offsets_count_bytes_and_consume_nothing(caller: Caller) -> None:
    token = await submit(caller, "echo first; echo zweite Zeile: ü; echo bad >&2")
    whole = await completed(caller, token)
    text = "first\nzweite Zeile: ü\n"
    assert (whole["stdout"], whole["stdout_length"], whole["stderr_length"]) == (
        text,
        len(text.encode()),
        4,
    )
    assert await query(caller, token) == whole, "without offsets everything comes again"
    rest = await query(caller, token, stdout_offset=6, stderr_offset=1)
    assert (rest["stdout"], rest["stderr"]) == ("zweite Zeile: ü\n", "ad\n")
    assert (rest["stdout_length"], rest["stderr_length"]) == (
        whole["stdout_length"],
        whole["stderr_length"],
    )
    at_end = await query(caller, token, stdout_offset=whole["stdout_length"], stderr_offset=4)
    past = await query(caller, token, stdout_offset=10_000_000, stderr_offset=10_000_000)
    for answer in (at_end, past):
        assert (answer["stdout"], answer["stderr"], answer["status"]) == ("", "", "completed")
        assert (answer["stdout_length"], answer["stderr_length"]) == (len(text.encode()), 4)


@pytest.mark.requirement("S4.R5.2", "S4.R1.3")
async def test_half_a_character_is_held_back_until_it_is_whole(
    caller: Caller, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    token = await submit(
        caller, f"printf 'a\\xe2\\x82'; until [ -e {go} ]; do sleep 0.05; done; printf '\\xacz'"
    )
    half = await shows(caller, token, "a")
    assert half["stdout_length"] == 1
    go.touch()
    ended = await completed(caller, token)
    assert (ended["stdout"], ended["stdout_length"]) == ("a€z", 5)
    assert (await query(caller, token, stdout_offset=half["stdout_length"]))["stdout"] == "€z"


# ---- compatibility -------------------------------------------------------------------------------


@pytest.mark.requirement("S4.R6.1", "S4.R6.3", "S4.R6.4")
async def test_a_caller_without_the_newer_parameters_is_served_as_before(caller: Caller) -> None:
    submitted = await caller.call(
        "run_command", command="pwd; tty; cat", timeout=10, working_directory="/usr/lib"
    )
    assert set(submitted) == {"token", "status", "message"}
    assert (submitted["status"], submitted["message"]) == ("pending", "submitted")
    uuid.UUID(submitted["token"])
    answer = await completed(caller, submitted["token"])
    assert answer["stdout"] == "/usr/lib\nnot a tty\n", "plain pipes, and an input that is empty"
    for timeout in (0, 3601):
        assert "timeout" in str(
            await caller.refusal("run_command", command="true", timeout=timeout)
        )


@pytest.mark.requirement("S4.R6.2", "S4.R6.3")
async def test_an_answer_has_the_members_it_always_had(caller: Caller) -> None:
    ended = await completed(caller, await submit(caller, "echo out; echo err >&2; exit 7"))
    old = {"token", "status", "exit_code", "stdout", "stderr", "execution_time", "timeout_occurred"}
    new = {"stdout_length", "stderr_length", "stdout_truncated", "stderr_truncated", "survivors"}
    assert set(ended) == old | new
    assert (ended["status"], ended["exit_code"], ended["stdout"], ended["stderr"]) == (
        "completed",
        7,
        "out\n",
        "err\n",
    )
    assert (ended["timeout_occurred"], ended["stdout_truncated"], ended["stderr_truncated"]) == (
        False,
        False,
        False,
    )


@pytest.mark.requirement("S4.R6.2")
@pytest.mark.parametrize("token", ["6a3b1f0e-9e0f-4d43-9d52-9b3e1f0a7c11", "no token at all"])
async def test_an_unknown_token_is_answered_and_not_refused(caller: Caller, token: str) -> None:
    answer = await query(caller, token)
    assert (answer["token"], answer["status"], answer["stdout"], answer["timeout_occurred"]) == (
        token,
        "not_found",
        "",
        False,
    )


async def test_a_token_of_another_project_is_unknown(caller: Caller, stack: Stack) -> None:
    token = await submit(caller, "echo mine")
    async with stack.caller(stack.provisioned.other_token) as stranger:
        assert (await query(stranger, token))["status"] == "not_found"


# ---- terminals -----------------------------------------------------------------------------------


@pytest.mark.requirement("S4.R3.1", "S4.R3.3", "S4.R3.5")
async def test_with_a_terminal_everything_it_shows_is_captured_as_it_came(caller: Caller) -> None:
    progress = (
        r"tty; for i in 1 2 3; do printf '\r%d%%' $i; done; printf "
        r"'\n\033[31mred\033[0m\a\033[?25l\n'; echo err >&2"
    )
    answer = await completed(caller, await submit(caller, progress, use_pty=True))
    as_it_came = await query(caller, answer["token"], view="raw")
    assert answer["stdout"].partition("\n")[2] == "3%\nred\nerr\n"
    assert as_it_came["stdout_length"] == answer["stdout_length"]
    device, _, shown = as_it_came["stdout"].partition("\r\n")
    assert device.startswith("/dev/pts/")
    assert shown == "\r1%\r2%\r3%\r\n\x1b[31mred\x1b[0m\x07\x1b[?25l\r\nerr\r\n"
    assert answer["stderr"] == ""
    assert "warning" not in answer


@pytest.fixture(scope="module")
def without_terminals() -> Iterator[Stack]:
    """Return a stack whose host has no pseudo-terminals."""
    # An empty directory where the terminals should be, for the daemon and its children alone.
    hide = ("unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/pts && exec "$@"', "sh")
    with running_stack(daemon_prefix=hide) as stack:
        yield stack


@pytest.mark.requirement("S4.R3.4")
async def test_a_job_without_a_terminal_runs_on_pipes_with_a_warning(
    without_terminals: Stack,
) -> None:
    async with without_terminals.caller() as caller:
        answer = await completed(
            caller, await submit(caller, "tty; echo err >&2; exit 3", use_pty=True)
        )
        assert (answer["stdout"], answer["stderr"], answer["exit_code"]) == (
            "not a tty\n",
            "err\n",
            3,
        )
        assert "terminal" in answer["warning"]
        assert "pipes" in answer["warning"]


@pytest.mark.requirement("S4.R7.1")
async def test_an_interactive_command_without_a_terminal_is_refused_in_words(
    without_terminals: Stack,
) -> None:
    async with without_terminals.caller() as caller:
        body = await caller.refusal("start_interactive_command", command="cat")
        assert "terminal" in body["error"]
        assert body["hint"]


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.requirement("S4.R7.3", "S4.R6.2")
async def test_a_job_whose_time_is_over_keeps_what_it_had_printed(
    caller: Caller, stack: Stack
) -> None:
    before = time.monotonic()
    token = await submit(
        caller, "echo partial; echo warning >&2; (setsid sleep 1000 &); sleep 1000", timeout=1
    )
    answer = await completed(caller, token)
    assert time.monotonic() - before < 60
    assert (answer["stdout"], answer["stderr"], answer["timeout_occurred"]) == (
        "partial\n",
        "warning\n",
        True,
    )
    assert answer["execution_time"] >= 1
    await await_until(lambda: not stack.program_pids(token), 90, "the whole tree to be gone")


@pytest.mark.requirement("S4.R7.1")
async def test_a_job_that_could_not_be_started_says_why(caller: Caller) -> None:
    answer = await completed(caller, await submit(caller, "/no/such/program"))
    assert answer["error_code"] == "PROGRAM_NOT_FOUND"
    assert "/no/such/program" in answer["error"]
