"""People and runs: what waits for an answer, what a denial does, and a stop."""

import subprocess
import sys
import threading
from pathlib import Path

from tests.support.agents.commands import RunRows, Submitter
from tests.support.agents.fixtures import RUN_SECONDS
from tests.support.agents.model_server import ModelServer, Says, Seen, call, done, in_turn
from tests.support.management import manage
from tests.support.stack import PROJECT_ROOT, Stack
from tests.support.waiting import wait_until


def _answered(agents: Stack, run: RunRows, *answer: str) -> None:
    def pending() -> list[dict[str, object]]:
        return [approval for approval in run.approvals if approval["answer"] == "pending"]

    wait_until(lambda: run.run["state"] == "waiting", RUN_SECONDS, "the run to wait for a person")
    (asked,) = pending()
    assert manage(agents, "answer_approval").stdout.count(f"#{asked['id']}:") == 1
    told = manage(agents, "answer_approval", str(asked["id"]), *answer)
    assert told.returncode == 0, told.stderr


def test_risky_calls_wait_for_a_person_and_a_denial_reaches_the_model(
    agents: Stack, models: ModelServer, runs: Submitter, tmp_path: Path
) -> None:
    kept, gone = tmp_path / "kept", tmp_path / "gone"
    kept.touch()
    gone.touch()
    models.scripts["risky"] = in_turn(
        call("execute_command", command=f"ls {tmp_path}"),
        call("execute_command", command=f"rm {kept}"),
        call("execute_command", command=f"bash -c 'rm {gone}'"),
        done(),
    )
    run = runs.submit("openai:risky", approvals="ask-risky")
    _answered(agents, run, "--deny", "--reason", "it is still needed")
    wait_until(lambda: len(run.approvals) == 2, RUN_SECONDS, "the next call to be asked about")
    _answered(agents, run, "--approve")
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert run.end == ("finished", "done")
    assert (kept.exists(), gone.exists()) == (True, False)
    assert [(asked["risk"], asked["answer"]) for asked in run.approvals] == [
        ("destructive", "denied"),
        ("destructive", "approved"),
    ]
    denial = run.results[1]
    assert denial["code"] == "DENIED_BY_OPERATOR"
    assert "it is still needed" in denial["error"]
    assert "it is still needed" in models.requests["risky"][2].last


def test_a_run_is_stopped_in_the_middle_of_a_call(
    agents: Stack, models: ModelServer, runs: Submitter, tmp_path: Path
) -> None:
    begun = tmp_path / "begun"
    models.scripts["stopped"] = in_turn(
        call(
            "start_interactive_command",
            command=f"bash -c 'touch {begun}; sleep 1000'",
            wait_seconds=30,
        )
    )
    run = runs.submit("openai:stopped")
    wait_until(begun.exists, RUN_SECONDS, "the program to run")
    run_id = run.run_id
    stopped = manage(agents, "run_agent", "--stop", run_id)
    assert stopped.returncode == 3, stopped.stdout + stopped.stderr
    assert run.end == ("stopped", "stopped")


def test_a_person_takes_a_session_over_and_the_agent_sees_the_note(
    agents: Stack, models: ModelServer, runs: Submitter
) -> None:
    taken = threading.Event()
    asks = (
        """bash -c 'read -p "Name: " name; echo "hello $name"; """
        """read -p "More: " more; echo "more $more"'"""
    )

    def types(text: str) -> Says:
        taken.wait(RUN_SECONDS)
        return call("send_command_input", session_id=session(), input_text=text, wait_seconds=30)

    def session() -> str:
        return str(run.results[0]["session_id"])

    def waits_on(seen: Seen) -> Says:
        # A wait may run out before a slow machine has handed back.
        return types("x\n") if "hello person" in seen.last else types("")

    models.scripts["taken"] = in_turn(
        call("start_interactive_command", command=asks, wait_seconds=20),
        lambda _seen: types("agent\n"),
        lambda seen: done() if "more x" in seen.last else waits_on(seen),
    )
    run = runs.submit("openai:taken")
    wait_until(lambda: run.results, RUN_SECONDS, "the session to ask")
    person = subprocess.Popen(
        [sys.executable, "manage.py", "take_over", session(), "--note", "I gave it my name"],
        cwd=PROJECT_ROOT,
        env=agents.server_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert person.stdin is not None
    wait_until(
        lambda: agents.database.session(session(), "taken_over_by")[0],
        RUN_SECONDS,
        "the session to be taken over",
    )
    taken.set()
    wait_until(lambda: len(run.results) > 1, RUN_SECONDS, "the agent's input to be refused")
    assert run.results[1]["code"] == "SESSION_TAKEN_OVER"
    # What cannot be typed is said, and costs nobody the keyboard.
    person.stdin.write("/keys no-such-key\nperson\n")
    said, _ = person.communicate(timeout=RUN_SECONDS)
    assert person.returncode == 0
    assert "UNKNOWN_KEY" in said
    assert "hello person" in said
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert run.end == ("finished", "done")
    handed_back = next(
        result for result in run.results if "hello person" in result.get("output", "")
    )
    assert "I gave it my name" in handed_back["hint"]
    assert handed_back["prompt"]["text"] == "More: "
    assert "hello agent" not in str(run.results)
