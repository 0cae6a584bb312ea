"""The survey of a host's sessions names each of them, whatever is wrong with another."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from controller_client.logs.paths import LogPaths
from controller_client.policy.host_policy import HostPolicy
from controller_client.protocol.messages import SessionSummary, StartInteractiveCmd
from controller_client.server_link.holders.end_watch import EndWatch
from controller_client.server_link.router import SessionRouter
from controller_client.server_link.session_route import SessionRoute
from controller_client.session_files.directory import create


async def test_trouble_with_one_session_keeps_no_other_from_being_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for session_id in ("a", "b", "c"):
        create(tmp_path, StartInteractiveCmd(seq=1, session_id=session_id, command="true"))
    recalled = []

    def recall(watch: EndWatch) -> None:
        recalled.append(watch._session_id)
        if watch._session_id == "a":
            raise RecursionError

    async def find(route: SessionRoute) -> SessionSummary:
        if route.session_id == "a":
            raise RecursionError
        return SessionSummary(session_id=route.session_id, state="lost", streams=[], input_seq=0)

    monkeypatch.setattr(EndWatch, "recall", recall)
    monkeypatch.setattr(SessionRoute, "find", find)
    config = SimpleNamespace(state_dir=tmp_path, control_group=None, log_paths=LogPaths([]))
    spawner = SimpleNamespace(run_as=None, sweep=None, left_by=None)
    router = SessionRouter(config, spawner, HostPolicy())
    router.recall()
    assert recalled == ["a", "b", "c"]
    found = await router.survey()
    assert [(one.session_id, one.state) for one in found] == [
        ("a", "running"),
        ("b", "lost"),
        ("c", "lost"),
    ]
