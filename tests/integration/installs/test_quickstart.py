"""``bin/quickstart`` as a newcomer runs it.

It shows a demonstration, makes configurations that work, refuses clearly and leaves nothing behind.
"""

import asyncio
import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from tests.support.installs.quickstart import (
    ROOT,
    SECONDS,
    left_behind,
    manage,
    printed,
    run,
    staying_up,
)
from tests.support.mcp.client import connect
from tests.support.ports import free_port
from tests.support.processes import pids_mentioning, pids_with_environment
from tests.support.waiting import await_until, wait_until

pytestmark = pytest.mark.timeout(900)


def test_once_shows_every_prompt_and_a_second_start_reuses_everything(tmp_path: Path) -> None:
    data_dir = tmp_path / "my data"
    first = run("--once", "--data-dir", str(data_dir), port=free_port())
    assert first.returncode == 0, first.stdout + first.stderr
    for kind in ("line", "secret"):
        assert f"kind: {kind}   evidence: kernel" in first.stdout
    assert "exit code: 0" in first.stdout
    assert "correct horse" not in first.stdout
    assert "one-time password: " in first.stdout
    assert first.stdout.index("\nConsole  ") < first.stdout.index("\nMCP endpoint  ")
    assert re.search(r"See it in the console: http://\S+/sessions/[0-9a-f-]{36}/\n", first.stdout)
    configuration = data_dir / "mcp.json"
    assert stat.S_IMODE(configuration.stat().st_mode) == 0o600
    token = json.loads(configuration.read_text())["mcpServers"]["holdline"]["headers"][
        "Authorization"
    ]
    assert left_behind(data_dir) == []

    port = free_port()
    manage(data_dir, "create_controller", "quickstart", "web1")
    second = run("--once", "--data-dir", str(data_dir), port=port)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "kind: secret   evidence: kernel" in second.stdout, "shown on the host of this machine"
    assert "Installing" not in second.stdout
    server = json.loads(configuration.read_text())["mcpServers"]["holdline"]
    assert server == {
        "type": "http",
        "url": f"http://127.0.0.1:{port}/mcp",
        "headers": {"Authorization": token},
    }
    assert left_behind(data_dir) == []


async def test_ctrl_c_ends_the_sessions_of_callers_too_and_leaves_no_process(
    tmp_path: Path,
) -> None:
    data_dir = tmp_path / "data"
    with staying_up(data_dir, free_port()) as quickstart:
        server = json.loads((data_dir / "mcp.json").read_text())["mcpServers"]["holdline"]
        async with connect(
            server["url"], server["headers"]["Authorization"].removeprefix("Bearer ")
        ) as caller:
            session = await caller.start("bash -c 'trap \"\" HUP; sleep 1000 & cat'")
            cookie = f"HOLDLINE_SESSION={session.session_id}".encode()
            assert pids_with_environment(cookie)
        os.killpg(quickstart.pid, signal.SIGINT)
        assert quickstart.wait(SECONDS) == 0
        assert left_behind(data_dir) == []
        assert pids_with_environment(cookie) == []


async def test_killed_servers_and_daemons_are_restarted_and_the_session_lives(
    tmp_path: Path,
) -> None:
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port):
        server = json.loads((data_dir / "mcp.json").read_text())["mcpServers"]["holdline"]
        token = server["headers"]["Authorization"].removeprefix("Bearer ")
        async with connect(server["url"], token) as caller:
            session = await caller.start("""bash -c 'read -p "name? " n; echo "hello $n"'""")
        for marker in (f"--port {port} ", "controller_client run"):
            (old,) = (pid for pid in pids_mentioning(marker) if pid in pids_mentioning(str(port)))
            os.kill(old, signal.SIGKILL)
            await await_until(
                lambda old=old, marker=marker: (
                    set(pids_mentioning(marker)) & set(pids_mentioning(str(port))) - {old}
                ),
                90,
                marker,
            )
        await await_until(lambda: answers(port), 90, "the server to answer again")
        assert printed(data_dir).count(" was ended by SIGKILL; starting it again") == 2
        async with connect(server["url"], token) as caller:
            result = await caller.call(
                "send_command_input",
                session_id=session.session_id,
                input_text="ada\n",
                wait_seconds=30,
            )
            assert (result["state"], result["exit_code"]) == ("exited", 0)
            assert "hello ada" in result["output"]


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def test_a_quickstart_that_is_killed_leaves_no_server_behind(tmp_path: Path) -> None:
    data_dir, port = tmp_path / "data", free_port()
    with staying_up(data_dir, port) as quickstart:
        server = pids_mentioning(f"--port {port} ")
        assert server
        quickstart.kill()
        wait_until(
            lambda: not pids_mentioning(f"--port {port} ") and not left_behind(data_dir),
            90,
            "the server and the daemon to end",
        )


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        refused = run("--once", "--data-dir", str(tmp_path / "data"), port=port)
    assert refused.returncode == 1
    assert f"error: port {port} on 127.0.0.1 is taken" in refused.stdout
    assert "PORT=" in refused.stdout


def test_a_wrong_port_is_named(tmp_path: Path) -> None:
    refused = run("--once", "--data-dir", str(tmp_path / "data"), port="http")
    assert refused.returncode == 1
    assert "error: port 'http' is not a port number" in refused.stdout


def test_a_read_only_directory_is_named() -> None:
    # Permission bits do not stop root, but nobody can write to /proc.
    refused = run("--once", "--data-dir", "/proc/holdline", port=free_port())
    assert refused.returncode == 1
    assert "error: cannot write to /proc/holdline" in refused.stdout
    assert "--data-dir" in refused.stdout


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "quickstart.lock").mkdir()
    refused = run("--once", "--data-dir", str(tmp_path), port=free_port())
    assert refused.returncode == 1
    assert f"error: {tmp_path}/quickstart.lock: Is a directory" in refused.stdout
    assert "Traceback" not in refused.stdout + refused.stderr


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path) -> None:
    checkout, shadow = tmp_path / "check out", tmp_path / "shadow"
    for part in ("bin", "quickstart"):
        (checkout / part).mkdir(parents=True)
        for file in (ROOT / part).iterdir():
            if file.is_file():
                (checkout / part / file.name).write_bytes(file.read_bytes())
                (checkout / part / file.name).chmod(file.stat().st_mode)
    (checkout / "requirements.txt").write_text("")
    shadow.mkdir()
    (shadow / "ensurepip.py").write_text("raise ImportError('not packed')\n")
    refused = run("--once", port=free_port(), root=checkout, PYTHONPATH=str(shadow))
    assert refused.returncode == 1
    assert "has no ensurepip module" in refused.stdout
    assert "python3-venv" in refused.stdout


def test_two_at_once_on_one_data_directory_are_refused(tmp_path: Path) -> None:
    data_dir = tmp_path / "data"
    with staying_up(data_dir, free_port()) as quickstart:
        refused = run("--once", "--data-dir", str(data_dir), port=free_port())
        assert refused.returncode == 1
        assert "another quickstart is running" in refused.stdout
        quickstart.terminate()
        assert quickstart.wait(SECONDS) == 0
    assert left_behind(data_dir) == []


async def reach_by_configurations(data_dir: Path) -> None:
    """Connect with every prepared client file, and check that it lists the tools for models."""
    files = list((data_dir / "clients").iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    found = {file.name: json.loads(file.read_text()) for file in files}
    for server in (
        found["vscode-mcp.json"]["servers"]["holdline"],
        found["cursor-mcp.json"]["mcpServers"]["holdline"],
    ):
        async with connect(
            server["url"], server["headers"]["Authorization"].removeprefix("Bearer ")
        ) as caller:
            assert len((await caller.client.list_tools()).tools) == 6
    bridge = found["claude_desktop_config.json"]["mcpServers"]["holdline"]
    started = StdioServerParameters(
        command=bridge["command"], args=bridge["args"], env=bridge["env"], cwd=data_dir
    )
    async with Client(stdio_client(started)) as client:
        assert len((await client.list_tools()).tools) == 6


def test_the_prepared_client_settings_and_the_documented_client_work(tmp_path: Path) -> None:
    data_dir = tmp_path / ".holdline"
    example = re.search(
        r"```python\n(.*?)```", (ROOT / "docs/getting-started.md").read_text(), re.DOTALL
    )
    assert example is not None
    with staying_up(data_dir, free_port()) as quickstart:
        ran = subprocess.run(
            [sys.executable, "-c", example[1]],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        promised = re.search(r"# (awaiting_input \{.*?),", example[1])
        assert promised is not None
        assert promised[1] in ran.stdout
        assert "42" in ran.stdout
        printed = data_dir.with_suffix(".log").read_text()
        assert all(
            line in printed
            for line in ("claude mcp add", "codex mcp add", "npx @modelcontextprotocol/inspector")
        )
        assert (data_dir / "api_token").read_text().strip() not in printed
        asyncio.run(reach_by_configurations(data_dir))
        quickstart.terminate()
        assert quickstart.wait(SECONDS) == 0
