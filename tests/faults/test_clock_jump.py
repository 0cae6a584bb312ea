"""The clock of a machine is set while its server runs: hosts stay there, callers are served,
sessions live.
"""

from pathlib import Path

import pytest

from tests.support.stack import running_stack

pytestmark = [pytest.mark.fault, pytest.mark.sqlite]


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
async def test_a_clock_that_is_set_takes_no_host_away(tmp_path: Path, jump: float) -> None:
    skew = tmp_path / "skew"
    skew.write_text("0")
    environment = {
        "DJANGO_SETTINGS_MODULE": "tests.support.databases.skewed_settings",
        "SKEW_SECONDS": str(skew),
    }
    with running_stack(server_environment=environment) as stack:
        async with stack.caller() as caller, caller.terminal("cat") as session:
            new = tmp_path / "new"
            new.write_text(str(jump))
            new.replace(skew)
            (host,) = (await caller.call("list_controllers"))["controllers"]
            assert host["online"], "before its next heartbeat"
            await session.send("one\n")
            await session.until_output("one", 30)
            done = await caller.call("execute_command", command="echo done")
            assert done["stdout"] == "done\n"
            assert (await caller.call("get_session", session_id=session.session_id))[
                "lifecycle"
            ] == "RUNNING"
