"""The database refuses output for a while.

That is logged, the program and the service continue, and nothing is missing later.
"""

from pathlib import Path

import httpx2
import pytest

from controller_client.protocol.limits import CloseCode
from tests.support.hosts.scripted_controller import scripted_controller
from tests.support.mcp.requests import modern
from tests.support.stack import Stack
from tests.support.waiting import await_until

pytestmark = pytest.mark.fault

# The store of output is away; or it is there and fails in a way that nobody foresaw.
_AWAY = (
    "ALTER TABLE projects_outputchunk RENAME TO output_away",
    "ALTER TABLE output_away RENAME TO projects_outputchunk",
)
_BROKEN = (
    (
        "CREATE TRIGGER broken BEFORE INSERT ON projects_outputchunk BEGIN SELECT RAISE(ABORT, "
        "'no room left'); END"
    ),
    "DROP TRIGGER broken",
)


@pytest.mark.requirement("S4.R7.2", "S4.R7.4")
@pytest.mark.parametrize(
    ("breaks", "heals", "logged"),
    [
        # To PostgreSQL a table that is away is an error of ours; a database that is away is under
        # test on a cluster.
        pytest.param(*_AWAY, "cannot be stored now", id="away", marks=pytest.mark.sqlite),
        pytest.param(*_BROKEN, "no room left", id="broken", marks=pytest.mark.sqlite),
    ],
)
async def test_output_that_cannot_be_stored_is_logged_and_stored_later(
    own_stack: Stack, tmp_path: Path, breaks: str, heals: str, logged: str
) -> None:
    steps, stop = tmp_path / "steps", tmp_path / "stop"
    counting = (
        f"i=0; until [ -e {stop} ]; do i=$((i+1)); echo line $i; echo $i > {steps}; sleep "
        "0.01; done; echo lines: $i"
    )
    async with own_stack.caller() as caller:
        token = (await caller.call("run_command", command=counting, timeout=120))["token"]
        await await_until(steps.exists, 90, "the job to run")
        own_stack.database.execute(breaks)
        await await_until(lambda: logged in own_stack.server_log(), 90, "the failure to be logged")
        before = int(steps.read_text() or 0)
        await await_until(
            lambda: int(steps.read_text() or 0) > before + 20, 90, "the job to go on meanwhile"
        )
        assert (await caller.call("list_controllers"))["controllers"], "the service is there"
        own_stack.database.execute(heals)
        stop.touch()
        await await_until(
            lambda: own_stack.database.state(token) == "EXITED", 60, "the job's end to be stored"
        )
        answer = await caller.call("query_command_status", token=token)
    *lines, last = answer["stdout"].splitlines()
    assert lines == [f"line {number}" for number in range(1, int(last.removeprefix("lines: ")) + 1)]
    assert (answer["exit_code"], answer["stdout_truncated"]) == (0, False)
    await own_stack.database.await_verified(token)
    assert "the connection is dead" not in (own_stack.root / "daemon.log").read_text(), (
        "a failed connection is closed, not left behind"
    )


@pytest.mark.sqlite
async def test_strict_recording_ends_only_programs_with_unstorable_output(
    own_stack: Stack,
) -> None:
    own_stack.database.execute(
        "UPDATE projects_project SET strict_seconds = 3 WHERE name = 'first'"
    )
    speaking = "i=0; while true; do i=$((i+1)); echo line $i; sleep 0.1; done"
    async with own_stack.caller() as caller:
        silent = (await caller.call("run_command", command="sleep 600", timeout=600))["token"]
        token = (await caller.call("run_command", command=speaking, timeout=600))["token"]
        await await_until(
            lambda: int(own_stack.database.session(token, "stdout_next_offset")[0]) > 0,
            60,
            "output to be stored",
        )
        own_stack.database.execute(_AWAY[0])
        await await_until(
            lambda: not own_stack.program_pids(token), 60, "the program to be ended by its host"
        )
        own_stack.database.execute(_AWAY[1])
        await await_until(
            lambda: own_stack.database.state(token) == "TERMINATED", 60, "the end to be stored"
        )
        answer = await caller.call("query_command_status", token=token)
        assert own_stack.program_pids(silent)
    notes, ended_by = own_stack.database.session(token, "notes", "ended_by")
    assert ("unrecorded" in notes, ended_by) == (True, "host")
    lines = answer["stdout"].splitlines()
    assert lines == [f"line {number}" for number in range(1, len(lines) + 1)]
    await own_stack.database.await_verified(token)


@pytest.mark.sqlite
async def test_who_cannot_be_looked_up_is_not_let_in(own_stack: Stack) -> None:
    for table in ("projects_apitoken", "projects_controllercredential"):
        own_stack.database.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
    body, headers = modern("list_controllers")
    shown = {
        **headers,
        "accept": "application/json, text/event-stream",
        "authorization": f"Bearer {own_stack.provisioned.token}",
    }
    async with httpx2.AsyncClient(timeout=60) as http:
        answer = await http.post(own_stack.url, json=body, headers=shown)
    assert (answer.status_code, "retry-after" in answer.headers) == (503, True)
    async with scripted_controller(own_stack.port, own_stack.provisioned.credential) as daemon:
        assert await daemon.closed() == CloseCode.GOING_AWAY
