"""Enrolment, rotation, approval and revocation of a host, with the real programs."""

import asyncio
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.support.mcp.client import detached
from tests.support.mcp.requests import modern
from tests.support.ports import free_port
from tests.support.stack import PROJECT_ROOT, Stack, running_stack
from tests.support.waiting import await_until, wait_until

# A quiet machine needs about a second. The deadline is for a busy one.
CLOSED_SECONDS = 15.0
ONLINE_SECONDS = 90.0


@pytest.fixture(scope="module")
def own_stack() -> Iterator[Stack]:
    with running_stack() as stack:
        yield stack


def manage(stack: Stack, *arguments: str) -> str:
    """Run ``manage.py`` in a process of its own, beside the server, and return its output."""
    environment = stack.server_environment(DJANGO_SETTINGS_MODULE="config.settings.base")
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=PROJECT_ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout.strip()


def controller_command(stack: Stack, name: str, state_dir: Path, *options: str) -> list[str]:
    """``holdline-controller NAME`` with its own state directory, as whoever runs the tests."""
    server = f"ws://127.0.0.1:{stack.port}/ws/controller/"
    as_root = ["--allow-root"] if os.geteuid() == 0 else []
    return [
        sys.executable,
        "-m",
        "controller_client",
        name,
        "--server",
        server,
        "--state-dir",
        str(state_dir),
        *as_root,
        *options,
    ]


def asked(
    stack: Stack, name: str, state_dir: Path, *options: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """The command's outcome; nothing of the environment but the path."""
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT_ROOT),
        "HOME": str(stack.root),
    }
    command = controller_command(stack, name, state_dir, *options)
    return subprocess.run(
        command,
        cwd=stack.root,
        env=environment,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
    )


@contextmanager
def daemon(stack: Stack, state_dir: Path) -> Iterator[Path]:
    """A daemon that finds its credential where ``enroll`` put it; its log."""
    log = state_dir.with_suffix(".log")
    options = ["--session-logs", str(state_dir.with_suffix(".logs"))]
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(PROJECT_ROOT),
        "HOME": str(stack.root),
    }
    with log.open("ab") as output:
        command = controller_command(stack, "run", state_dir, *options)
        process = subprocess.Popen(
            command,
            cwd=stack.root,
            env=environment,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(ONLINE_SECONDS)


def connected_with(stack: Stack, name: str) -> str:
    """Key id of the credential under which the controller is connected; empty if it is not."""
    joined = (
        "projects_controller c JOIN projects_controllercredential k ON k.id = "
        "c.connected_credential_id"
    )
    rows = stack.database.rows(f"SELECT k.key_id FROM {joined} WHERE c.name = ?", name)
    return str(rows[0][0]) if rows else ""


def key_id_in(file: Path) -> str:
    return file.read_text().split("_")[1]


def test_a_host_enrols_and_rotates_its_credential_and_a_copy_is_refused(own_stack: Stack) -> None:
    state_dir, copy = own_stack.root / "web-1", own_stack.root / "copy"
    code = manage(own_stack, "create_enrolment_code", "first", "web-1")
    enrolled = asked(own_stack, "enroll", state_dir, "--code", "-", stdin=code + "\n")
    assert (enrolled.returncode, enrolled.stderr) == (0, "")
    assert "enrolled as first/web-1" in enrolled.stdout
    file = state_dir / "credential"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [entry.name for entry in state_dir.iterdir()] == ["credential"]
    again = asked(own_stack, "enroll", own_stack.root / "late", "--code", code)
    assert again.returncode == 1
    assert "not valid" in again.stderr
    assert not (own_stack.root / "late" / "credential").exists()
    assert asked(own_stack, "enroll", state_dir, "--code", code).returncode == 78

    with daemon(own_stack, state_dir):
        first = key_id_in(file)
        wait_until(
            lambda: connected_with(own_stack, "web-1") == first,
            ONLINE_SECONDS,
            "the enrolled host to be online",
        )
        shutil.copytree(state_dir, copy)
        (copy / "instance_id").unlink()

        assert asked(own_stack, "rotate", state_dir).returncode == 0
        second = key_id_in(file)
        assert second != first
        assert key_id_in(state_dir / "credential.earlier") == first
        assert connected_with(own_stack, "web-1") == first
        assert asked(own_stack, "rotate", state_dir).returncode == 1, "a third credential"
        manage(own_stack, "revoke", first)
        wait_until(
            lambda: connected_with(own_stack, "web-1") == second,
            ONLINE_SECONDS,
            "the host to come back with its new credential",
        )

        (copy / "credential").write_text(file.read_text())
        with daemon(own_stack, copy) as copied_log:
            wait_until(
                lambda: "ALARM" in copied_log.read_text(), ONLINE_SECONDS, "the copy to be refused"
            )
        assert connected_with(own_stack, "web-1") == second
    alarm = own_stack.database.rows(
        "SELECT alarm FROM projects_controller WHERE name = 'web-1' AND alarmed_at IS NOT NULL"
    )
    assert "another daemon" in alarm[0][0]
    # A copy is refused also while the real host is away.
    with daemon(own_stack, copy) as copied_log:
        wait_until(
            lambda: copied_log.read_text().count("ALARM") >= 2,
            ONLINE_SECONDS,
            "the copy to be refused again",
        )
    assert connected_with(own_stack, "web-1") == second


def test_an_unapproved_host_says_that_it_waits_and_is_served_once_approved() -> None:
    with running_stack(server_environment={"HOLDLINE_ENROLMENT_APPROVAL": "true"}) as stack:
        state_dir = stack.root / "web-2"
        code = manage(stack, "create_enrolment_code", "first", "web-2")
        enrolled = asked(stack, "enroll", state_dir, "--code", code)
        assert "once an operator has approved it" in enrolled.stdout
        with daemon(stack, state_dir) as log:
            wait_until(
                lambda: "waiting for an operator of the server" in log.read_text(),
                ONLINE_SECONDS,
                "the daemon to say that it waits",
            )
            assert connected_with(stack, "web-2") == ""
            assert manage(stack, "approve", "first/web-2") == "approved"
            wait_until(
                lambda: connected_with(stack, "web-2") == key_id_in(state_dir / "credential"),
                90,
                "the host to be online",
            )
        assert stack.database.rows(
            "SELECT count(*) FROM projects_auditevent WHERE action = "
            "'controller.protocol_violation'"
        ) == [(0,)]


@pytest.mark.parametrize("is_layer_up", [True, False], ids=["doorbells work", "redis down"])
async def test_revoking_a_credential_closes_the_connection_and_stops_its_output(
    is_layer_up: bool,
) -> None:
    # The channel layer is down from the beginning, so no process is woken by a doorbell.
    environment = {} if is_layer_up else {"REDIS_URL": f"redis://127.0.0.1:{free_port()}/0"}
    with running_stack(server_environment=environment) as stack:
        async with detached(stack.caller()) as caller:
            started = await caller.call(
                "start_interactive_command",
                command="yes streaming",
                wait_seconds=1,
                max_output_bytes=256,
            )
            session = started["session_id"]
            key_id = stack.provisioned.credential.split("_")[1]
            await asyncio.to_thread(manage, stack, "revoke", key_id)
            log = stack.root / "daemon.log"
            await await_until(
                lambda: re.search(r"(\(|received )(4401|4009)\b", log.read_text()),
                CLOSED_SECONDS,
                "the socket to be closed",
            )
            heard = stack.database.session(session, "stdout_next_offset")
            refused = await caller.refusal(
                "send_command_input", session_id=session, keys=["ctrl-c"]
            )
            assert refused["code"] == "CONTROLLER_OFFLINE"
            assert stack.database.session(session, "stdout_next_offset") == heard


async def test_revoking_a_token_ends_its_waiting_calls_and_refuses_later_ones(
    own_stack: Stack,
) -> None:
    token = manage(own_stack, "create_api_token", "first", "--name", "short-lived")
    async with detached(own_stack.caller(token)) as caller:
        waiting = asyncio.create_task(
            caller.refusal(
                "start_interactive_command", command="sleep 600", controller="host", wait_seconds=30
            )
        )
        query = (
            "SELECT COUNT(*) FROM projects_commandsession WHERE command = 'sleep 600' AND "
            "state = 'RUNNING'"
        )
        await await_until(
            lambda: own_stack.database.rows(query) == [(1,)], ONLINE_SECONDS, "the program to run"
        )
        await asyncio.to_thread(manage, own_stack, "revoke", token.split("_")[1])
        async with asyncio.timeout(CLOSED_SECONDS):
            assert (await waiting)["code"] == "UNAUTHENTICATED"
    body, headers = modern("list_sessions")
    headers = {**headers, "authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=ONLINE_SECONDS) as http:
        later = await http.post(f"http://127.0.0.1:{own_stack.port}/mcp", json=body)
    assert (later.status_code, later.json()["error"]["data"]["code"]) == (401, "UNAUTHENTICATED")
    assert own_stack.database.rows(query) == [(1,)], "the program goes on"
