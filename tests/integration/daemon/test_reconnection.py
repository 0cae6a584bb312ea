"""The real daemon's connection to a scripted server: identity, refusals, retries, heartbeats."""

from http import HTTPStatus
from pathlib import Path
from uuid import UUID

import pytest

from controller_client.protocol.messages import Ping, Pong
from tests.support.hosts.daemon_process import DaemonProcess, daemon_process
from tests.support.hosts.scripted_server import ScriptedServer
from tests.support.waiting import await_until

SECONDS = 60.0


async def test_hello_has_the_identity_which_a_restart_keeps(
    server: ScriptedServer, daemon: DaemonProcess
) -> None:
    hello = await server.connected()
    assert UUID(hello.instance_id)
    assert hello.boot_id
    assert hello.versions == [1]
    assert hello.sessions == []
    await daemon.terminate()
    await daemon.start()
    assert (await server.connected(2)).instance_id == hello.instance_id


async def test_a_second_daemon_on_the_same_state_directory_is_refused(
    server: ScriptedServer,
    daemon: DaemonProcess,
    tmp_path: Path,
) -> None:
    second_directory = tmp_path / "second"
    second_directory.mkdir()
    second = DaemonProcess(second_directory, server.url)
    second.state_dir = daemon.state_dir
    await second.start()
    assert await second.wait() == 78
    assert "another daemon" in second.log


async def test_the_server_sets_the_heartbeat_interval_and_pings_are_answered(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.heartbeat_seconds = 0.05
    async with daemon_process(tmp_path, server.url):
        await server.connected()
        await await_until(
            lambda: len([message for message in server.received if isinstance(message, Ping)]) >= 3,
            SECONDS,
            "heartbeats",
        )
        await server.send(Ping(id="here"))
        assert (await server.wait_for(Pong, lambda pong: pong.reply_to == "here")).sessions == 0


async def test_a_refused_credential_waits_minutes_to_retry_and_is_never_logged(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.refuse_with = HTTPStatus.UNAUTHORIZED
    async with daemon_process(tmp_path, server.url) as daemon:
        await await_until(lambda: "(401" in daemon.log, SECONDS, "the refusal in the log")
        assert len(server.authorizations) == 1
        assert await daemon.terminate() == 0
        assert "s" * 43 not in daemon.log


async def test_a_credential_in_use_elsewhere_raises_an_alarm(
    tmp_path: Path, server: ScriptedServer
) -> None:
    server.close_after_hello = 4010
    async with daemon_process(tmp_path, server.url) as daemon:
        await await_until(lambda: "ALARM" in daemon.log, SECONDS, "the alarm in the log")
        assert "--state-dir" in daemon.log, "it may be the same host"


@pytest.mark.parametrize(
    ("code", "remedy"), [(4401, "enroll"), (4403, "enroll"), (4426, "upgrade")]
)
async def test_a_refusal_says_in_the_log_what_to_do(
    tmp_path: Path, server: ScriptedServer, code: int, remedy: str
) -> None:
    server.close_after_hello = code
    async with daemon_process(tmp_path, server.url) as daemon:
        await await_until(lambda: f"({code}" in daemon.log, SECONDS, "the refusal in the log")
        (line,) = [line for line in daemon.log.splitlines() if f"({code}" in line]
        assert remedy in line
        assert ". Next attempt in" in line


async def test_a_credential_that_was_replaced_meanwhile_is_tried_at_once(
    tmp_path: Path, server: ScriptedServer
) -> None:
    async with daemon_process(tmp_path, server.url) as daemon:
        await server.connected()
        daemon.credential_file.write_text("ctl_fresh_" + "t" * 43)
        server.close_after_hello = 4401
        await server.close(4401)
        await await_until(
            lambda: "Another credential is in its file and is tried now" in daemon.log,
            SECONDS,
            "the log",
        )
        await await_until(
            lambda: len(server.authorizations) == 2, SECONDS, "the other credential to be tried"
        )


async def test_a_daemon_started_before_its_server_connects_once_it_is_there(
    tmp_path: Path, server: ScriptedServer
) -> None:
    await server.stop()
    async with daemon_process(tmp_path, server.url) as daemon:
        await await_until(lambda: "cannot connect" in daemon.log, SECONDS, "a failed attempt")
        await server.start()
        await server.connected()
