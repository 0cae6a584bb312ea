"""The agent of the requirement: an ordinary user's daemon, sudo and apt-get.

The model knows the password by its name only.
"""

from collections.abc import Iterator

import pytest

from tests.support.accounts import Account, requires
from tests.support.agents.commands import RunRows, submitted
from tests.support.agents.model_server import ModelServer, Says, Seen, call, done
from tests.support.hosts.apt_repository import Repository, apt_repository
from tests.support.management import manage
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

RUN_SECONDS = 150.0
_LIFETIME_SECONDS = 8.0


@pytest.fixture(scope="module")
def ordinary_agents(models: ModelServer, sudoer: Account) -> Iterator[Stack]:
    """A daemon of an ordinary user with sudo; the password is a secret of the project."""
    requires("sudo", "apt-get")
    environment = {
        **models.environment,
        "HOLDLINE_AGENT_POLL_SECONDS": "0.1",
        "HOLDLINE_AGENT_APPROVALS": "auto",
    }
    with running_stack(account=sudoer, server_environment=environment) as stack:
        terms = ("--any-controller", "--command", "sudo")
        stored = manage(stack, "set_secret", "first", "sudo", *terms, stdin=sudoer.password + "\n")
        assert stored.returncode == 0, stored.stderr
        yield stack


@pytest.fixture
def repository() -> Iterator[Repository]:
    """A package repository with the package to install."""
    with apt_repository() as built:
        yield built


@pytest.mark.requirement(
    "S3.V1.1", "S3.V1.2", "S3.V1.3", "S3.V1.4", "S3.V1.5", "S3.V1.6", "S3.V1.7", "S3.V1.8"
)
@pytest.mark.requirement("S3.R5.1", "S3.R5.3")
@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_an_agent_installs_a_package_and_terminates_a_hung_session(
    ordinary_agents: Stack, models: ModelServer, repository: Repository, sudoer: Account, wire: str
) -> None:
    def play(seen: Seen) -> Says:
        """As a model would: by what it sees, not by how often it was asked."""
        if not seen.results:
            return call(
                "start_interactive_command",
                command=f"sudo -k {repository.command}",
                wait_seconds=20,
            )
        session = seen.value("session_id")
        everything = "\n".join(seen.results)
        if "/abandoned" in everything and "hung-now" not in everything:
            return call(
                "start_interactive_command",
                command="""bash -c 'trap "" TERM INT; echo hung-now; while :; do sleep 1; done'""",
            )
        if "hung-now" in everything:
            ended = '"end_reason":"terminated"' in seen.last
            return (
                done("installed and tidied up")
                if ended
                else call("send_command_input", session_id=session, input_text="", terminate=True)
            )
        if "install ok installed" in seen.last:
            return call(
                "start_interactive_command",
                command="bash -c 'echo /abandoned; sleep 1000'",
                lifetime_seconds=_LIFETIME_SECONDS,
                wait_for="/abandoned",
            )
        if '"exit_code":0' in seen.last:
            return call(
                "execute_command",
                command=f"dpkg-query -W -f '${{Status}}' {repository.application}",
            )
        if '"kind":"secret"' in seen.last:
            return call("send_command_input", session_id=session, secret="sudo", wait_seconds=20)
        if "Do you want to continue?" in seen.last and '"kind":"line"' in seen.last:
            return call("send_command_input", session_id=session, input_text="Y\n", wait_seconds=30)
        return call("send_command_input", session_id=session, input_text="", wait_seconds=20)

    name = f"{wire}-installs"
    models.scripts[name] = play
    run = RunRows(
        ordinary_agents,
        submitted(
            ordinary_agents, f"install {repository.application}", "--model", f"{wire}:{name}"
        ),
    )
    wait_until(lambda: run.is_over, RUN_SECONDS, "the run to end")
    assert run.end == ("finished", "done"), run.results
    assert repository.is_installed

    results = run.results
    asked = results[0]["prompt"]
    assert asked["kind"] == "secret"
    assert sudoer.name in asked["text"] or "assword" in asked["text"]
    questions = [
        result
        for result in results
        if (result.get("prompt") or {}).get("text", "").startswith("Do you want to continue?")
    ]
    assert questions, "apt-get asked nothing"
    installed = next(result for result in results if result.get("exit_code") is not None)
    assert (installed["exit_code"], installed["state"]) == (0, "exited")
    assert any(repository.application in result.get("output", "") for result in results)
    checked = next(result for result in results if "return_code" in result)
    assert (checked["return_code"], checked["stdout"]) == (0, "install ok installed")
    hung = results[-2]
    assert (hung["state"], hung["end_reason"]) == ("exited", "terminated")

    abandoned = next(
        result["session_id"] for result in results if "/abandoned" in result.get("output", "")
    )
    wait_until(
        lambda: ordinary_agents.database.state(abandoned) == "TIMED_OUT",
        RUN_SECONDS,
        "the abandoned session to end by itself",
    )
    # The password is in no request, no row and no log.
    assert sudoer.password not in repr(models.requests[name])
    assert sudoer.password not in repr(run.steps)
    assert sudoer.password not in ordinary_agents.logs(10_000)
