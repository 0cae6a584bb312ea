"""``bin/quickstart`` started again, after whatever happened since the first start."""

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from quickstart.options import Options
from quickstart.preflight import usable_port
from tests.support.installs.quickstart import (
    ROOT,
    SECONDS,
    caller_of,
    left_behind,
    manage,
    printed,
    run,
    staying_up,
)
from tests.support.mcp.client import Caller
from tests.support.ports import free_port
from tests.support.processes import pids_mentioning, pids_with_environment
from tests.support.waiting import await_until

pytestmark = pytest.mark.timeout(900)
ASKING = """bash -c 'read -p "name? " n; echo "hello $n"'"""


def rows(data_dir: Path, question: str) -> list[Any]:
    with contextlib.closing(sqlite3.connect(data_dir / "db.sqlite3", timeout=30)) as database:
        answer = list(database.execute(question))
        database.commit()
    return answer


def interrupt(quickstart: "subprocess.Popen[str]") -> None:
    os.killpg(quickstart.pid, signal.SIGINT)
    assert quickstart.wait(SECONDS) == 0


def kill_everything(data_dir: Path, quickstart: "subprocess.Popen[str]") -> None:
    """Kill the quickstart, the server and the daemon, but not the holders of sessions."""
    recorded = [int(pid) for pid in json.loads((data_dir / "children.json").read_text())]
    for pid in (quickstart.pid, *recorded):
        os.kill(pid, signal.SIGKILL)
    quickstart.wait(SECONDS)


async def is_online(caller: Caller, name: str) -> None:
    async def look() -> bool:
        found = await caller.call("list_controllers")
        return any(one["name"] == name and one["online"] for one in found["controllers"])

    await await_until(look, 60, f"{name} to be online")


@contextlib.contextmanager
def second_host(data_dir: Path, port: int, name: str) -> Iterator[None]:
    """A second daemon on this machine while inside, with a state directory of its own."""
    credential = data_dir / f"{name}.credential"
    if not credential.exists():
        credential.touch(0o600)
        credential.write_text(manage(data_dir, "create_controller", "quickstart", name))
    command = [
        sys.executable,
        "-m",
        "controller_client",
        "run",
        "--server",
        f"ws://127.0.0.1:{port}/ws/controller/",
    ]
    command += [
        "--credential-file",
        str(credential),
        "--state-dir",
        str(data_dir.parent / f"{name}-state"),
        "--allow-root",
    ]
    with (data_dir.parent / f"{name}.log").open("a") as log:
        daemon = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
    try:
        yield
    finally:
        daemon.terminate()
        daemon.wait(SECONDS)


async def test_a_session_on_a_second_host_outlives_ctrl_c_and_a_second_start(
    tmp_path: Path,
) -> None:
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port) as quickstart, second_host(data_dir, port, "web1"):
        async with caller_of(data_dir) as caller:
            await is_online(caller, "web1")
            there = await caller.start(ASKING, controller="web1")
            here = await caller.start(ASKING, controller="local")
        interrupt(quickstart)
        assert pids_with_environment(f"HOLDLINE_SESSION={here.session_id}".encode()) == []
        assert pids_with_environment(f"HOLDLINE_SESSION={there.session_id}".encode())
        ended = dict(
            rows(
                data_dir,
                "SELECT command, ended_by FROM projects_commandsession WHERE ended_at IS NOT NULL",
            )
        )
        assert ended[ASKING].startswith("cli:")
        with staying_up(data_dir, port) as again:
            assert f"goes on: {ASKING}" in printed(data_dir)
            assert "One interactive session" not in printed(data_dir), (
                "a second start has nothing to demonstrate"
            )
            async with caller_of(data_dir) as caller:
                await is_online(caller, "web1")
                typed = {"session_id": there.session_id, "input_text": "ada\n", "wait_seconds": 30}
                answer = await caller.call("send_command_input", **typed)
                assert (answer["state"], "hello ada" in answer["output"]) == ("exited", True)
            interrupt(again)
    assert left_behind(data_dir) == []


def test_a_demonstration_without_a_place_is_shown_by_a_later_start(tmp_path: Path) -> None:
    data_dir, port = tmp_path / "data", free_port()
    assert run("--once", "--data-dir", str(data_dir), port=port).returncode == 0
    (data_dir / "demonstrated").unlink()
    allow = "UPDATE projects_project SET max_interactive_sessions = "
    rows(data_dir, f"{allow}0")
    with staying_up(data_dir, port) as full:
        assert (
            "The demonstration is left out: callers hold all the interactive sessions that the "
            "project allows, if it allows any. The next start tries it again."
        ) in printed(data_dir)
        interrupt(full)
    rows(data_dir, f"{allow}8")
    with staying_up(data_dir, port) as roomy:
        assert "-> ended   exit code: 0" in printed(data_dir)
        interrupt(roomy)
    with staying_up(data_dir, port) as last:
        assert "One interactive session" not in printed(data_dir)
        interrupt(last)


async def test_after_kill_9_of_everything_sessions_go_on_in_the_next_start(tmp_path: Path) -> None:
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port) as quickstart:
        async with caller_of(data_dir) as caller:
            session = await caller.start(ASKING)
        # The one place there is now is taken, also while a demonstration is due.
        rows(data_dir, "UPDATE projects_project SET max_interactive_sessions = 1")
        (data_dir / "demonstrated").unlink()
        kill_everything(data_dir, quickstart)
    once = run("--once", "--data-dir", str(data_dir), port=port)
    assert once.returncode == 0, once.stdout + once.stderr
    assert "The demonstration is left out: callers hold all the interactive sessions" in once.stdout
    assert not (data_dir / "demonstrated").exists()
    assert pids_with_environment(f"HOLDLINE_SESSION={session.session_id}".encode()), (
        "the end of a start ends nobody's session"
    )
    with staying_up(data_dir, port) as again:
        assert f"goes on: {ASKING}" in printed(data_dir)
        async with caller_of(data_dir) as caller:
            answer = await caller.call(
                "send_command_input",
                session_id=session.session_id,
                input_text="ada\n",
                wait_seconds=30,
            )
            assert (answer["state"], answer["exit_code"]) == ("exited", 0)
            assert "hello ada" in answer["output"]
        interrupt(again)
    assert left_behind(data_dir) == []


async def test_a_revoked_local_host_is_told_once_and_a_new_start_makes_another(
    tmp_path: Path,
) -> None:
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port) as quickstart:
        async with caller_of(data_dir) as caller:
            session = await caller.start(ASKING)
        manage(data_dir, "revoke", "quickstart/local")
        await await_until(
            lambda: "The host local was revoked" in printed(data_dir), 90, "the word of it"
        )
        (daemon,) = (
            pid
            for pid in pids_mentioning("controller_client run")
            if pid in pids_mentioning(str(port))
        )
        os.kill(daemon, signal.SIGKILL)
        status = data_dir / "controller" / "status.json"
        await await_until(
            lambda: (
                (told := json.loads(status.read_text()))["pid"] != daemon
                and told["state"] == "refused"
            ),
            90,
            "its successor to be refused",
        )
        async with caller_of(data_dir) as caller:
            assert (await caller.call("list_controllers"))["controllers"] == []
        interrupt(quickstart)
        assert printed(data_dir).count("The host local was revoked") == 1
        assert "refuses the local controller; its log" not in printed(data_dir)
        assert pids_with_environment(f"HOLDLINE_SESSION={session.session_id}".encode()) == []
    with staying_up(data_dir, port) as again:
        async with caller_of(data_dir) as caller:
            await is_online(caller, "local")
            answer = await caller.call("execute_command", command="echo hello")
            assert answer["stdout"] == "hello\n"
        interrupt(again)
    assert left_behind(data_dir) == []


def test_a_start_right_after_kill_9_waits_for_the_port(tmp_path: Path) -> None:
    # The server of a killed quickstart listens for a moment longer. A server that is stopped by
    # SIGSTOP listens until it is killed.
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port) as quickstart:
        (server,) = pids_mentioning(f"--port {port} ")
        os.kill(server, signal.SIGSTOP)
        quickstart.kill()
        quickstart.wait(SECONDS)
    with staying_up(data_dir, port) as again:
        assert "Ending the server and the controller of a quickstart that was killed" in printed(
            data_dir
        )
        assert pids_mentioning(f"--port {port} ") != [server]
        interrupt(again)
    assert left_behind(data_dir) == []


async def test_a_list_of_allowed_commands_leaves_the_demonstration_out(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with staying_up(data_dir, free_port(), ALLOWED_COMMANDS="sleep,echo,cat,pwd") as quickstart:
        assert "The demonstration is left out: the allowed commands" in printed(data_dir)
        async with caller_of(data_dir) as caller:
            assert (await caller.call("execute_command", command="echo hello"))[
                "stdout"
            ] == "hello\n"
        interrupt(quickstart)
    assert not (data_dir / "demonstrated").exists()
    shown = run(
        "--once",
        "--data-dir",
        str(data_dir),
        port=free_port(),
        ALLOWED_COMMANDS="sleep,echo,python3:shell",
    )
    assert (shown.returncode, "kind: secret   evidence: kernel" in shown.stdout) == (0, True), (
        shown.stdout
    )


def test_after_a_restore_nothing_is_shown_until_it_is_confirmed(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    assert run("--once", "--data-dir", str(data_dir), port=free_port()).returncode == 0
    backups = str(tmp_path / "backups")
    manage(data_dir, "backup", backups)
    (made,) = Path(backups).iterdir()
    manage(data_dir, "restore", str(made), "--replace")
    once = run("--once", "--data-dir", str(data_dir), port=free_port())
    assert (once.returncode, "manage.py confirm_restore" in once.stdout) == (1, True)
    assert "could not be asked" not in once.stdout
    manage(data_dir, "confirm_restore", "--yes")
    assert run("--once", "--data-dir", str(data_dir), port=free_port()).returncode == 0


async def test_a_demonstration_that_fails_leaves_everything_up(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    assert run("--once", "--data-dir", str(data_dir), port=free_port()).returncode == 0
    rows(
        data_dir,
        "UPDATE projects_project SET max_lifetime_seconds = 10, default_lifetime_seconds = 10",
    )
    (data_dir / "demonstrated").unlink()
    once = run("--once", "--data-dir", str(data_dir), port=free_port())
    assert (once.returncode, "The demonstration failed: " in once.stdout) == (1, True)
    with staying_up(data_dir, free_port()) as quickstart:
        assert "The demonstration failed: " in printed(data_dir)
        async with caller_of(data_dir) as caller:
            assert (await caller.call("execute_command", command="echo hello"))[
                "stdout"
            ] == "hello\n"
        interrupt(quickstart)
    assert left_behind(data_dir) == []


async def test_the_project_is_roomy_and_has_a_directory_for_logs(tmp_path: Path) -> None:
    data_dir, logs = tmp_path / "data", tmp_path / "more logs"
    logs.mkdir()
    with staying_up(data_dir, free_port(), "--log-root", str(logs)) as quickstart:
        assert "Project         quickstart" in printed(data_dir)
        assert "up to 8 interactive sessions at once, 24 hours each" in printed(data_dir)
        async with caller_of(data_dir) as caller:
            for directory in (data_dir / "monitored-logs", logs):
                (directory / "app.log").write_text("one line\n")
                monitor = {"session_id": f"c0ffee00-0000-4000-8000-{len(str(directory)):012d}"}
                log = {"session_type": "file", "log_file": str(directory / "app.log")}
                await caller.call("start_session_monitor", **monitor, **log)
                assert (await caller.call("get_session_updates", **monitor))[
                    "new_content"
                ] == "one line\n"
            for _ in range(8):
                await caller.start("cat", lifetime_seconds=24 * 3600)
        interrupt(quickstart)


def test_a_taken_default_port_gives_way_to_the_next_free_one(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        options = Options(data_dir=tmp_path, port=port, once=False, is_port_chosen=False)
        assert port < usable_port(options) < port + 20
