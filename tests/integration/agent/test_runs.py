"""Whole runs on the real stack: a command submits them and the server carries them out."""

import json
import re
import subprocess
import sys

from tests.support.agents.commands import RunRows, submitted
from tests.support.management import manage
from tests.support.stack import PROJECT_ROOT, Stack, running_stack
from tests.support.waiting import wait_until

RUN_SECONDS = 90.0


def test_a_run_without_a_key_is_followed_to_its_end(stack: Stack) -> None:
    followed = manage(
        stack, "run_agent", "--project", "first", "--model", "scripted:demo", "show me"
    )
    assert followed.returncode == 0, followed.stdout + followed.stderr
    for shown in (
        "> execute_command uname",
        "-> waits for input: secret (kernel)",
        "| You said y.",
        "-> ended, exit code 0",
        "= finished (done)",
    ):
        assert shown in followed.stdout
    run = RunRows(stack, followed.stdout.split()[2])
    assert [step["is_complete"] for step in run.steps] == [1] * 6
    assert run.run["is_successful"] == 1


def test_what_is_typed_at_a_hidden_prompt_is_in_no_row_of_the_run(stack: Stack) -> None:
    run = RunRows(stack, submitted(stack, "show me", "--model", "scripted:demo"))
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert run.end == ("finished", "done")
    assert "correct horse" not in json.dumps(run.steps, default=str)
    assert "(hidden input)" in json.dumps(run.steps, default=str)


def test_the_command_carries_a_run_out_itself_if_it_is_told_to(stack: Stack) -> None:
    followed = manage(
        stack,
        "run_agent",
        "--project",
        "first",
        "--here",
        "show me",
        environment={"HOLDLINE_AGENT_MODEL": "scripted:demo"},
    )
    assert followed.returncode == 0, followed.stdout + followed.stderr


def test_runs_are_listed_and_shown_for_people_and_for_programs(stack: Stack) -> None:
    run_id = submitted(stack, "list me", "--model", "scripted:demo", "--max-steps", "9")
    run = RunRows(stack, run_id)
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    listed = manage(stack, "agent_runs", "--project", "first", "--state", "finished")
    assert re.search(rf"{run_id} .*finished \(done\).*6 steps.*list me", listed.stdout)
    found = json.loads(manage(stack, "agent_runs", "--json").stdout)
    (mine,) = [one for one in found if one["id"] == run_id]
    assert (mine["project"], mine["state"], mine["steps"], mine["max_steps"]) == (
        "first",
        "finished",
        6,
        9,
    )
    assert "> execute_command uname" in manage(stack, "agent_runs", run_id[:13]).stdout
    whole = json.loads(manage(stack, "agent_runs", run_id, "--json").stdout)
    assert [step["number"] for step in whole["steps"]] == [1, 2, 3, 4, 5, 6]
    assert "correct horse" not in json.dumps(whole)


def test_a_model_nobody_knows_ends_the_run_by_name(stack: Stack) -> None:
    followed = manage(
        stack, "run_agent", "--project", "first", "--model", "nobody:knows", "show me"
    )
    assert followed.returncode == 2
    assert "= failed (model_not_usable)" in followed.stdout


async def test_a_run_without_a_key_leaves_the_session_of_another_alone() -> None:
    with running_stack(max_interactive_sessions=1) as narrow:
        async with narrow.caller() as caller:
            other = await caller.start("bash -c 'read line; echo \"got $line\"'")
            followed = manage(
                narrow, "run_agent", "--project", "first", "--model", "scripted:demo", "show me"
            )
            assert followed.returncode == 1, followed.stdout + followed.stderr
            assert "= finished (gave_up)" in followed.stdout
            assert "\nSESSION_LIMIT_REACHED: " in followed.stdout
            assert "> send_command_input" not in followed.stdout
            await other.send("mine\n")
            await other.until("exited")
            assert other.seen.endswith("got mine\n")


def test_a_follower_who_cannot_answer_is_told_where_to(agents: Stack) -> None:
    arguments = [
        "manage.py",
        "run_agent",
        "--project",
        "first",
        "--approvals",
        "ask-all",
        "--model",
        "scripted:demo",
        "show me",
    ]
    with subprocess.Popen(
        [sys.executable, *arguments],
        cwd=PROJECT_ROOT,
        env=agents.server_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    ) as following:
        assert following.stdout is not None
        answer = next(
            found[1]
            for line in following.stdout
            if (found := re.search(r"answer_approval (\d+) --approve", line))
        )
        denied = manage(agents, "answer_approval", answer, "--deny", "--reason", "not now")
        assert denied.returncode == 0, denied.stderr
        assert "DENIED_BY_OPERATOR: a person denied this call: not now" in following.stdout.read()
    assert following.returncode == 1
