"""Whole runs over both wires that reach a limit: each ends with its name and keeps all rows."""

import json
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.agents.fixtures import RUN_SECONDS, Carried
from tests.support.agents.model_server import Fails, ModelServer, Says, Script, call, in_turn
from tests.support.management import manage
from tests.support.stack import Stack
from tests.support.waiting import wait_until

WIRES = ("openai", "anthropic")
PRICED = {"openai": "gpt-4o", "anthropic": "claude-sonnet-4-5"}
"""Names that prices are published of."""


def endless(tokens: tuple[int, int] = (100, 10)) -> Script:
    """Never done, and never the same."""
    return lambda seen: Says("", call("list_sessions", limit=1 + seen.turns).calls, tokens=tokens)


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("limit", "most", "steps"),
    [("max_steps", 3, 3), ("max_tokens", 300, 3), ("max_tokens", 110, 1)],
)
def test_steps_and_tokens(
    carried_out: Carried, models: ModelServer, wire: str, limit: str, most: int, steps: int
) -> None:
    models.scripts[f"{wire}-endless"] = endless()
    run = carried_out(f"{wire}:{wire}-endless", **{limit: most})
    assert run.end == ("failed", limit)
    assert [step["is_complete"] for step in run.steps] == [1] * steps


@pytest.mark.parametrize("wire", WIRES)
def test_cost_by_published_prices(carried_out: Carried, models: ModelServer, wire: str) -> None:
    models.scripts[PRICED[wire]] = endless((100_000, 1_000))
    run = carried_out(f"{wire}:{PRICED[wire]}", max_cost_cents=60)
    assert run.end == ("failed", "max_cost")
    costs = [step["cost_cents"] for step in run.steps]
    assert all(20 < cost < 40 for cost in costs)
    assert sum(costs[:-1]) < 60 <= sum(costs) == pytest.approx(run.run["cost_cents"])


@pytest.mark.parametrize("wire", WIRES)
def test_time_ends_a_call_in_the_middle_and_leaves_its_session(
    carried_out: Carried, models: ModelServer, tmp_path: Path, wire: str
) -> None:
    begun = tmp_path / "begun"
    waits = call(
        "start_interactive_command",
        command=f"bash -c 'echo once >> {begun}; sleep 1000'",
        wait_seconds=30,
    )
    models.scripts[f"{wire}-slow"] = in_turn(call("list_sessions", limit=1), waits)
    run = carried_out(f"{wire}:{wire}-slow", max_run_seconds=1)
    assert run.end == ("failed", "max_run_seconds")
    assert run.run["worked_seconds"] >= 1
    # A slow machine may not come as far as the call that waits; as far as it came is there.
    steps = run.steps
    assert len(steps) <= 2
    assert all(step["is_complete"] for step in steps[:1]) or len(steps) == 1
    assert all((step["is_complete"], step["results"]) == (0, []) for step in steps[1:])


def test_output_of_one_call_shows_its_head_and_its_tail(
    carried_out: Carried, models: ModelServer
) -> None:
    prints = "seq 1 20000"
    models.scripts["prints"] = in_turn(
        call("execute_command", command=prints),
        call(
            "start_interactive_command",
            command=f"bash -c '{prints}'",
            wait_seconds=30,
            wait_for="exited",
        ),
        call("finish_task", success=True, summary="seen"),
    )
    run = carried_out("openai:prints", output_bytes=2000)
    assert run.end == ("finished", "done")
    for shown in models.requests["prints"][-1].results:
        assert 1000 < len(shown) < 4000
    first = models.requests["prints"][-1].results[0]
    assert "\n1\n2\n" in first
    assert "\n20000\n" in first


def test_a_model_that_never_answers(agents: Stack, models: ModelServer) -> None:
    """The model is silent at once, or after its first words.

    A process that is less patient than the server carries the run out.
    """
    names = [f"{wire}:{wire}-{how}" for wire in WIRES for how in ("silence", "stall")]
    for name in names:
        fault = Fails("stall" if name.endswith("stall") else "silence")
        models.scripts[name.partition(":")[2]] = in_turn(
            call("execute_command", command="echo kept"), fault
        )
    impatient = {"HOLDLINE_AGENT_MODEL_SILENCE_SECONDS": "4", "HOLDLINE_AGENT_MODEL_ATTEMPTS": "3"}

    def carried_out_here(name: str) -> subprocess.CompletedProcess[str]:
        return manage(
            agents,
            "run_agent",
            "--here",
            "--json",
            "--project",
            "first",
            "--model",
            name,
            "x",
            environment=impatient,
        )

    with ThreadPoolExecutor(len(names)) as pool:
        all_told = list(pool.map(carried_out_here, names))
    for told in all_told:
        assert told.returncode == 2, told.stderr
        *lines, run = map(json.loads, told.stdout.splitlines())
        assert (run["state"], run["stop_reason"]) == ("failed", "model_silent")
        assert "sent nothing for 4 s" in run["report"]
        assert {"kind": "output", "text": "kept"} in lines
        assert any(line["kind"] == "note" and "attempt 2 of 3" in line["text"] for line in lines)


def test_a_run_that_ran_out_is_resumed_with_more(
    agents: Stack, carried_out: Carried, models: ModelServer
) -> None:
    models.scripts["resumed"] = lambda seen: (
        call("finish_task", success=True, summary="done")
        if "take your time" in seen.told
        else call("list_sessions", limit=1 + seen.turns)
    )
    run = carried_out("openai:resumed", max_steps=2)
    assert run.end == ("failed", "max_steps")
    again = manage(
        agents, "run_agent", "--resume", run.run_id, "--max-steps", "9", "take your time"
    )
    assert again.returncode == 0, again.stdout + again.stderr
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert run.end == ("finished", "done")
    assert [step["said_before"] for step in run.steps] == [[], [], ["take your time"]]
    refused = manage(agents, "run_agent", "--resume", "0000")
    assert (refused.returncode, "RUN_NOT_FOUND" in refused.stderr) == (4, True)
