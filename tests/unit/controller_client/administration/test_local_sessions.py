"""Sessions that are named, listed and ended on their host, without a server."""

from pathlib import Path

import pytest

from controller_client.administration import local_sessions
from controller_client.administration.local_sessions import Found, sessions_of
from controller_client.cli import main
from controller_client.session_files.directory import SessionDirectory


def found(session_id: str) -> Found:
    """A session whose program runs."""
    return Found(session_id=session_id, command="cat", pid=1, is_running=True, since=0.0)


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the sessions that were ended. One session runs."""
    done: list[str] = []

    def end(_state_dir: Path, chosen: list[Found]) -> list[Found]:
        done.extend(one.session_id for one in chosen)
        return []

    monkeypatch.setattr(local_sessions, "become_owner", lambda _path: None)
    monkeypatch.setattr(local_sessions, "sessions_of", lambda _path: [found("5f0c1c8e-1")])
    monkeypatch.setattr(local_sessions, "end_sessions", end)
    return done


def test_a_name_that_is_empty_ends_no_session(
    tmp_path: Path, ended: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["kill", "--config", "off", "--state-dir", str(tmp_path)]
    assert main([*command, ""]) == 78
    assert ended == []
    assert "no running sessions begin with ''" in capsys.readouterr().err
    # Twice the same session is one.
    assert main([*command, "5f0c", "5f0c1c8e-1"]) == 0
    assert ended == ["5f0c1c8e-1"]


def test_a_session_that_goes_while_it_is_listed_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        (tmp_path / "sessions" / name).mkdir(parents=True)
    read = SessionDirectory.read_pid

    def removed_then_read(self: SessionDirectory) -> int | None:
        if self.session_id == "a":
            self.path.rmdir()
        return read(self)

    monkeypatch.setattr(SessionDirectory, "read_pid", removed_then_read)
    assert [one.session_id for one in sessions_of(tmp_path)] == ["b"]
