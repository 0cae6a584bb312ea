"""A start that waited for its holder is looked at again before it is written to the holder."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controller_client.logs.paths import LogPaths
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.kill_switch import KillSwitch
from controller_client.protocol.messages import Started, StartInteractiveCmd, Welcome
from controller_client.server_link import router as router_module
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.server_link.holders.spares import ForkServerLink
from controller_client.server_link.router import SessionRouter
from controller_client.system.resource_limits import NO_LIMITS
from tests.support.waiting import await_until


class _BusySpawner(Spawner):
    """A real spawner whose fork server is reached when the test says so."""

    def __init__(self, state_dir: Path) -> None:
        super().__init__(state_dir)
        self.is_asked, self.is_ready = asyncio.Event(), asyncio.Event()

    async def _reached(self) -> ForkServerLink:
        self.is_asked.set()
        await self.is_ready.wait()
        return await super()._reached()


@asynccontextmanager
async def _waiting(
    tmp_path: Path, sent: list[Any]
) -> AsyncIterator[tuple[_BusySpawner, SessionRouter]]:
    """A start of ``touch ran`` that waits for a fork server, with a kill switch at ``stop``."""
    state_dir = tmp_path / "state"
    state_dir.mkdir(mode=0o700)
    spawner = _BusySpawner(state_dir)
    config = SimpleNamespace(
        state_dir=state_dir, control_group=None, log_paths=LogPaths([]), limits=NO_LIMITS
    )
    policy = HostPolicy((), KillSwitch([tmp_path / "stop"], tmp_path / "stopped"))
    router = SessionRouter(config, spawner, policy)
    connection: Any = SimpleNamespace(send=sent.append)
    welcome = Welcome(
        epoch=1,
        heartbeat_seconds=1,
        lease_seconds=60,
        session_window_bytes=1 << 16,
        connection_window_bytes=1 << 16,
        sessions=[],
    )
    router.connect(connection, welcome)
    router.on_message(
        StartInteractiveCmd(
            seq=1, session_id="a", command=f"touch {tmp_path / 'ran'}", ttl_seconds=60
        )
    )
    await spawner.is_asked.wait()
    try:
        yield spawner, router
    finally:
        await spawner.close()


async def _answer(spawner: _BusySpawner, sent: list[Any]) -> Started:
    spawner.is_ready.set()
    await await_until(lambda: any(isinstance(one, Started) for one in sent), 60, "an answer")
    return next(one for one in sent if isinstance(one, Started))


async def test_a_host_that_is_stopped_meanwhile_starts_nothing(tmp_path: Path) -> None:
    sent: list[Any] = []
    async with _waiting(tmp_path, sent) as (spawner, _):
        (tmp_path / "stop").touch()
        answer = await _answer(spawner, sent)
    assert answer.failure is not None
    assert answer.failure.code == "HOST_STOPPED"
    assert not (tmp_path / "ran").exists()
    assert not list((tmp_path / "state").rglob("start*"))


async def test_a_start_that_expires_meanwhile_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    async with _waiting(tmp_path, sent) as (spawner, _):
        late = router_module.time.monotonic() + 61
        monkeypatch.setattr(router_module, "time", SimpleNamespace(monotonic=lambda: late))
        answer = await _answer(spawner, sent)
    assert answer.failure is not None
    assert answer.failure.code == "EXPIRED"
    assert not (tmp_path / "ran").exists()
