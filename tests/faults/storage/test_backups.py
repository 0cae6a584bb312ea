"""The commands ``backup``, ``restore`` and ``confirm_restore``, on both storages."""

import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.support.management import manage, manage_well
from tests.support.stack import Stack, running_stack
from tests.support.waiting import wait_until

pytestmark = pytest.mark.fault


@pytest.fixture
def stack() -> Iterator[Stack]:
    """Servers on the storage of this run, and a daemon."""
    with running_stack() as started:
        yield started


def _back_up(stack: Stack, *options: str) -> Path:
    manage_well(stack, "backup", str(stack.root / "backups"), *options)
    (made,) = (stack.root / "backups").glob("holdline-*")
    return made


def _restore(stack: Stack, backup: Path, *options: str) -> str:
    """Restore as an administrator does: stop all servers, restore, start them."""
    stack.kill_server()
    stack.database.close()
    said = manage_well(stack, "restore", str(backup), "--replace", *options)
    stack.start_server()
    return said


def _rotate(stack: Stack) -> None:
    """Give the host another credential, which the backup does not know."""
    # The stack's host has two already, and a third is refused.
    manage_well(stack, "revoke", stack.provisioned.spare_credential.split("_")[1])
    known = stack.credential_file.read_text()
    command, environment = stack.daemon_command()
    as_root = ["--allow-root"] if "--allow-root" in command else []
    server = f"ws://127.0.0.1:{stack.port}/ws/controller/"
    command[command.index("run") :] = ["rotate", "--server", server, *as_root]
    command += ["--credential-file", str(stack.credential_file)]
    subprocess.run(command, env=environment, cwd=stack.root, check=True, capture_output=True)
    assert stack.credential_file.read_text() != known


def _actions(stack: Stack, action: str) -> list[dict[str, Any]]:
    found = stack.database.rows(
        "SELECT detail FROM projects_auditevent WHERE action = ? ORDER BY id", action
    )
    return [json.loads(detail) for (detail,) in found]


def _is_refused(stack: Stack) -> bool:
    """True if the server does not know the callers' token."""
    request = urllib.request.Request(
        stack.url, b"{}", {"Authorization": f"Bearer {stack.provisioned.token}"}
    )
    try:
        urllib.request.urlopen(request, timeout=120).close()
    except urllib.error.HTTPError as error:
        return error.code == HTTPStatus.UNAUTHORIZED
    return False


def _wait_for_host(stack: Stack) -> None:
    wait_until(lambda: _actions(stack, "controller.restored"), 60, "the daemon to be back")


async def test_a_restore_under_a_live_holder_loses_and_repeats_nothing(
    stack: Stack, tmp_path: Path
) -> None:
    typed, repeated = tmp_path / "typed", str(uuid4())
    async with stack.caller() as caller:
        session = await caller.start(
            f"sh -c 'while read a; do echo $a >>{typed}; echo got-$a; done'"
        )
        await session.send("one\n", wait_for="got-one")
        backup = _back_up(stack)
        await session.send("two\n", wait_for="got-two", request_id=repeated)
        await session.send("three\n", wait_for="got-three")
    _rotate(stack)
    said = _restore(stack, backup)
    assert "confirm_restore" in said
    assert _is_refused(stack)
    _wait_for_host(stack)
    assert "first: " in manage_well(stack, "confirm_restore")
    assert _is_refused(stack)
    assert "valid again" in manage_well(stack, "confirm_restore", "--yes")
    async with stack.caller() as caller:
        about = {"session_id": session.session_id, "wait_seconds": 20}
        refused = await caller.refusal(
            "send_command_input", input_text="two\n", request_id=repeated, **about
        )
        assert refused["code"] == "REQUEST_NOT_KNOWN"
        fresh = refused["hint"].split("request_id ")[1].split(";")[0]
        for text, named in (("four", {"request_id": fresh}), ("five", {}), ("six", {})):
            answer = await caller.call(
                "send_command_input",
                input_text=f"{text}\n",
                wait_for=f"got-{text}",
                **about,
                **named,
            )
            assert f"got-{text}" in answer["output"]
        assert typed.read_text().split() == ["one", "two", "three", "four", "five", "six"]
        await caller.call("send_command_input", session_id=session.session_id, terminate=True)
    (restored,) = _actions(stack, "restore")
    assert restored["suspended"]["tokens"] == len(stack.database.rows(_TOKENS))
    assert len(_actions(stack, "restore.confirm")) == 1
    assert "whole" in manage_well(stack, "verify_audit")


_TOKENS = "SELECT id FROM projects_apitoken WHERE revoked_at IS NULL"


async def test_an_encrypted_backup_is_restored_into_an_empty_server(
    stack: Stack, tmp_path: Path
) -> None:
    passphrase = tmp_path / "passphrase"
    passphrase.write_text("correct horse battery staple\n")
    manage_well(stack, "set_secret", "first", "db", "--any-controller", stdin="s3cret\n")
    backup = _back_up(stack, "--encrypt-to", str(passphrase))
    assert {path.name for path in backup.iterdir()} > {"keys.json.sealed", "manifest.json"}
    stack.kill_server()
    stack.database.close()
    refused = manage(stack, "restore", str(backup), "--replace")
    assert "--decrypt-with" in refused.stderr
    refused = manage(stack, "restore", str(backup), "--decrypt-with", str(passphrase))
    assert "--replace" in refused.stderr
    # Another machine: other keys, which the server has made for itself.
    for name in ("encryption_key", "secret_key"):
        (stack.data_dir / name).unlink()
    manage_well(stack, "check")
    said = manage_well(
        stack, "restore", str(backup), "--replace", "--decrypt-with", str(passphrase)
    )
    assert "encryption key of the backup" in said
    stack.start_server()
    assert "1 secrets" in manage_well(stack, "reseal_secrets")


async def test_a_served_database_and_a_changed_backup_are_refused(stack: Stack) -> None:
    backup = _back_up(stack)
    refused = manage(stack, "restore", str(backup), "--replace")
    assert "Stop every server process" in refused.stderr
    stack.kill_server()
    stack.database.close()
    manifest = json.loads((backup / "manifest.json").read_text())
    copy = backup.with_name("changed")
    shutil.copytree(backup, copy)
    with (copy / manifest["database"]["name"]).open("r+b") as file:
        file.seek(2000)
        file.write(b"????")
    assert "not what the manifest says" in manage(stack, "restore", str(copy), "--replace").stderr
    manifest["migrations"].append("projects.9999_of_another_year")
    (copy / "manifest.json").write_text(json.dumps(manifest))
    assert "newer than this one" in manage(stack, "restore", str(copy), "--replace").stderr
    stack.start_server()
    async with stack.caller() as caller:
        await caller.call("list_sessions")


def test_a_disk_that_fills_leaves_no_backup_and_a_sentence(stack: Stack, tmp_path: Path) -> None:
    script = (
        f"mount -t tmpfs -o size=64k none {tmp_path} && "
        f'"$0" manage.py backup {tmp_path}; echo "ended with $?"; ls -A {tmp_path}'
    )
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, sys.executable],
        env=stack.server_environment(),
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == ["ended with 4"], done.stderr
    assert "no backup was made" in done.stderr
