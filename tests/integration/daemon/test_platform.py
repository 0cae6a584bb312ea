"""A command as its program sees it: on a pseudo-terminal of its own, without a wrapper."""

import pytest

from tests.support.processes import command_line, open_descriptors
from tests.support.stack import PROJECT_ROOT, Stack


@pytest.mark.requirement("S1.R6.1", "S3.C1.1")
async def test_on_linux_a_command_runs_without_a_wrapper(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal("sleep 1000", wait_seconds=0.2) as session:
        assert [command_line(pid) for pid in stack.program_pids(session.session_id)] == [
            "sleep 1000"
        ]
        controllers = await caller.call("list_controllers")
        assert "linux" in str(controllers).lower()


@pytest.mark.requirement("S3.R1.2", "S3.D2.1")
async def test_a_program_has_a_terminal_of_its_own_and_leads_its_session(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("bash -c 'tty; ps -o pid=,sid=,tpgid= -p $$'")
        device, ids = session.result["output"].splitlines()[:2]
        assert device.startswith("/dev/pts/")
        assert len(set(ids.split())) == 1


@pytest.mark.requirement("S3.R1.2", "S3.D2.1")
def test_pexpect_owns_the_terminal_and_has_one_importer() -> None:
    package = PROJECT_ROOT / "controller_client"
    importers = [
        path.name
        for path in package.rglob("*.py")
        if "import pexpect" in path.read_text() or "from pexpect" in path.read_text()
    ]
    assert importers == ["pty_process.py"]


async def test_the_environment_of_a_program_holds_nothing_of_the_daemon(stack: Stack) -> None:
    async with stack.caller() as caller:
        session = await caller.start("env", env={"GREETING": "hello there"})
        names = {
            line.partition("=")[0] for line in session.result["output"].splitlines() if "=" in line
        }
        assert "GREETING" in names
        assert not names & {"PYTHONPATH", "HOLDLINE_DATA_DIR", "LD_PRELOAD"}
        assert {"PATH", "HOME", "TERM", "LANG", "HOLDLINE_SESSION"} <= names


async def test_a_program_holds_no_descriptor_of_the_daemon(stack: Stack) -> None:
    async with stack.caller() as caller, caller.terminal("sleep 1000", wait_seconds=0.2) as session:
        (pid,) = stack.program_pids(session.session_id)
        assert set(open_descriptors(pid)) == {0, 1, 2}
