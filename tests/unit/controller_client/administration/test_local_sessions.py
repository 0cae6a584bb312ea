"""Sessions that are named, listed and ended on their host, without a server."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from controller_client.administration import local_sessions
from controller_client.administration.local_sessions import Found, sessions_of
from controller_client.cli import main
from controller_client.protocol.messages import (
    InteractiveCmdDone,
    InteractiveOutput,
    RunCommand,
    SessionSummary,
)
from controller_client.session_files.directory import SessionDirectory, create

FIRST, SECOND, ENDED = "5f0c1c8e-1", "5f0c2222-1", "77777777-1"


def found(session_id: str, *, is_running: bool = True, command: str = "cat") -> Found:
    """A session whose program runs, or has ended."""
    return Found(session_id=session_id, command=command, pid=1, is_running=is_running, since=0.0)


class Host:
    """What was ended on a host, and what cannot be ended there."""

    def __init__(self, state_dir: Path) -> None:
        self.state_dir = state_dir
        self.sessions = [found(FIRST), found(SECOND), found(ENDED, is_running=False)]
        self.ended: list[str] = []
        self.stubborn: set[str] = set()

    def end(self, _state_dir: Path, chosen: list[Found]) -> list[Found]:
        """End the sessions, and return those that go on."""
        self.ended += [one.session_id for one in chosen if one.session_id not in self.stubborn]
        return [one for one in chosen if one.session_id in self.stubborn]

    def run(self, command: str, *words: str) -> int:
        """Run a command there."""
        return main([command, "--config", "off", "--state-dir", str(self.state_dir), *words])


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with two sessions that run, and one that has ended."""
    host = Host(tmp_path)
    monkeypatch.setattr(local_sessions, "become_owner", lambda _path: None)
    monkeypatch.setattr(local_sessions, "sessions_of", lambda _path: host.sessions)
    monkeypatch.setattr(local_sessions, "end_sessions", host.end)
    return host


def test_a_name_that_is_empty_ends_no_session(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    assert host.run("kill", "") == 78
    assert host.ended == []
    assert "no running sessions begin with ''" in capsys.readouterr().err
    # Twice the same session is one.
    assert host.run("kill", "5f0c1", FIRST) == 0
    assert host.ended == [FIRST]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (["5f0c"], "2 running sessions begin with '5f0c'"),
        (["8"], "no running sessions begin with '8'"),
        # It has ended: there is nothing to end.
        ([ENDED], f"no running sessions begin with '{ENDED}'"),
        ([FIRST, "8"], "no running sessions begin with '8'"),
        (["8", "--all"], "no running sessions begin with '8'"),
        ([f"{FIRST}x"], "no running sessions begin with"),
        (["\x1b[31m"], "begin with '\\x1b[31m'"),
        ([], "name a session, or use --all"),
    ],
)
def test_where_one_name_is_wrong_nothing_is_ended(
    host: Host, capsys: pytest.CaptureFixture[str], names: list[str], said: str
) -> None:
    assert host.run("kill", *names) == 78
    assert host.ended == []
    assert said in capsys.readouterr().err


def test_all_is_what_runs_and_the_exit_code_says_what_goes_on(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    host.stubborn = {SECOND}
    assert host.run("kill", "--all") == 1
    assert host.ended == [FIRST]
    told = capsys.readouterr().out
    assert told == f"{FIRST}  ended\n{SECOND}  still runs\n"
    host.sessions = [found(ENDED, is_running=False)]
    # Without harm once more, when nothing runs.
    assert host.run("kill", "--all") == 0
    assert (host.ended, capsys.readouterr().out) == ([FIRST], "")


def test_a_session_that_has_ended_cannot_be_attached_to(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (ENDED, "", "5f0c"):
        assert host.run("attach", name) == 78
        assert "running sessions begin with" in capsys.readouterr().err


class Holder:
    """A holder that tells what its program wrote, and then that it ended."""

    async def open(self, directory: SessionDirectory, on_message: Any, _on_closed: Any) -> Any:
        """Tell all of it at once."""
        name = directory.session_id
        for seq, (stream, data) in enumerate(
            [
                ("stdout", b"10 %\x1b]0;x\x07\r20"),
                ("stderr", b"\xe2\x80\xae!\r\n"),
                ("stdout", b" %\xc3"),
            ]
        ):
            on_message(
                InteractiveOutput(session_id=name, stream=stream, offset=0, seq=seq, data=data)
            )
        on_message(InteractiveCmdDone(session_id=name, end_reason="exited", exit_code=0))
        return self, SessionSummary(session_id=name, state="done", streams=[], input_seq=0)

    def send(self, message: object) -> None:
        """Take what is asked."""

    def close(self) -> None:
        """End the conversation."""


@pytest.mark.parametrize(
    ("is_terminal", "shown"),
    [
        (True, "20 %\n\\u{202e}!\n20 %\ufffd".encode()),
        (False, b"10 %\x1b]0;x\x07\r20\xe2\x80\xae!\r\n %\xc3"),
    ],
)
def test_a_terminal_gets_text_of_a_session_and_a_file_its_bytes(
    host: Host,
    monkeypatch: pytest.MonkeyPatch,
    capsysbinary: pytest.CaptureFixture[bytes],
    is_terminal: bool,
    shown: bytes,
) -> None:
    monkeypatch.setattr(local_sessions, "HolderClient", Holder())
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal, raising=False)
    assert host.run("attach", FIRST) == 0
    assert capsysbinary.readouterr().out == shown


def test_each_session_is_one_line_whatever_its_command(
    host: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    feigned = f"true\n{SECOND}  process 1  cat\r\x1b[2K\u202e"
    host.sessions = [found(FIRST, command=feigned), found(ENDED, is_running=False)]
    assert host.run("sessions") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        rf"{FIRST}  process 1  true\n{SECOND}  process 1  cat\u{{000d}}\u{{001b}}[2K\u{{202e}}",
        f"{ENDED}  ended  cat",
    ]
    assert host.run("sessions", "--json") == 0
    # For programs, the command is as it was given.
    assert json.loads(capsys.readouterr().out)[0] == {
        "session_id": FIRST,
        "command": feigned,
        "pid": 1,
        "is_running": True,
        "since": 0.0,
    }


def test_where_there_are_none_the_place_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    service = tmp_path / "service"
    monkeypatch.setattr(local_sessions, "SERVICE_STATE_DIR", service)
    command = ["sessions", "--config", "off", "--state-dir"]
    for state_dir in (tmp_path / "none", tmp_path):
        assert main([*command, str(state_dir)]) == 0
        assert capsys.readouterr().out == f"no sessions in {state_dir}\n"
    service.mkdir()
    assert main([*command, str(tmp_path)]) == 0
    hint = "" if os.geteuid() == 0 else f"; those of the service are in {service}: use sudo"
    assert capsys.readouterr().out == f"no sessions in {tmp_path}{hint}\n"
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert main([*command, str(tmp_path)]) == 0
    assert f"those of the service are in {service}: use sudo" in capsys.readouterr().out
    assert main([*command, str(service)]) == 0
    assert "use sudo" not in capsys.readouterr().out
    assert main([*command, str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_sessions_are_found_by_their_directories_whatever_else_is_there(tmp_path: Path) -> None:
    sessions = tmp_path / "sessions"
    for name, words in (("b", {"argv": ["wc", "-l"]}), ("a", {"command": "wc -l"})):
        assert create(tmp_path, RunCommand(seq=1, session_id=name, **words))
    done = InteractiveCmdDone(session_id="b", end_reason="exited", exit_code=0)
    SessionDirectory(sessions / "b").write_done(done)
    # Not sessions: a file, a name that no session has, and one that is hidden.
    (sessions / "file").touch()
    for name in ("no session", ".hidden", "x" * 65, "-"):
        (sessions / name).mkdir()
    (sessions / "empty").mkdir()
    listed = {one.session_id: (one.command, one.is_running) for one in sessions_of(tmp_path)}
    assert listed == {"a": ("wc -l", False), "b": ("wc -l", False), "empty": ("", False)}


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
