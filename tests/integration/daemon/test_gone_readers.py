"""Commands whose output nobody reads to its end: ``command | head``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.agents.fixtures import RUN_SECONDS
from tests.support.stack import PROJECT_ROOT, Stack

_MANAGE = (sys.executable, "manage.py")
_CONTROLLER = (sys.executable, "-m", "controller_client")
_BRIDGE = (sys.executable, "-c", "from mcp_bridge.cli import console; console()")


def _unread(
    command: tuple[str, ...], stack: Stack, *, is_stderr_too: bool = False
) -> tuple[int, str]:
    """Exit code and stderr of a command whose standard output is a pipe that nobody reads."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            command,
            cwd=PROJECT_ROOT,
            env=stack.server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=writing if is_stderr_too else subprocess.PIPE,
            timeout=RUN_SECONDS,
            check=False,
        )
    finally:
        os.close(writing)
    return ended.returncode, (ended.stderr or b"").decode()


@pytest.mark.parametrize(
    "command",
    [
        pytest.param((*_MANAGE, "agent_runs", "--json"), id="agent_runs --json"),
        pytest.param((*_MANAGE, "verify_audit"), id="verify_audit"),
        pytest.param((*_MANAGE, "export_audit"), id="export_audit"),
        pytest.param((*_MANAGE, "create_enrolment_code", "--help"), id="help"),
        pytest.param((*_MANAGE, "showmigrations"), id="a command of Django"),
        pytest.param(
            (*_MANAGE, "run_agent", "--project", "first", "--model", "scripted:demo", "show me"),
            id="run_agent",
        ),
        pytest.param((*_CONTROLLER, "--help"), id="holdline-controller"),
        pytest.param((*_CONTROLLER, "--version"), id="holdline-controller --version"),
    ],
)
def test_a_command_whose_reader_is_gone_ends_without_a_traceback(
    stack: Stack, command: tuple[str, ...]
) -> None:
    code, said = _unread(command, stack)
    # argparse itself ignores a broken pipe while it prints.
    assert (
        code in {0, 141}
        if command[-1].startswith("--") and "--json" not in command
        else code == 141,
        said,
    ) == (True, "")


def test_a_command_whose_errors_are_not_read_either_ends_in_the_same_way(stack: Stack) -> None:
    assert _unread((*_MANAGE, "verify_audit"), stack, is_stderr_too=True)[0] == 141


def test_a_local_agent_run_is_handed_to_the_server_when_its_reader_goes(stack: Stack) -> None:
    command = (
        *_MANAGE,
        "run_agent",
        "--project",
        "first",
        "--here",
        "--model",
        "scripted:demo",
        "left behind",
    )
    code, said = _unread(command, stack)
    assert (code, said) == (141, "")
    reserved = stack.database.rows(
        "SELECT is_reserved FROM agent_agentrun WHERE task = ?", "left behind"
    )
    assert [bool(one) for (one,) in reserved] == [False]


def test_the_bridge_ends_silently_when_its_client_is_gone(stack: Stack) -> None:
    assert _unread((*_BRIDGE, "--help"), stack) == (0, "")


def test_a_bill_of_materials_ends_silently_when_its_reader_does(stack: Stack) -> None:
    code, said = _unread((sys.executable, str(Path("bin", "sbom.py")), "requirements.txt"), stack)
    assert (code, said) == (-13, "")
