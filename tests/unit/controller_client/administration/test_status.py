"""``service status``: what is said of a daemon, and the exit code that says the same."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from controller_client.administration import local_sessions, service
from controller_client.administration.installation import Installation
from controller_client.administration.managers import Unmanaged
from controller_client.cli import main
from controller_client.server_link.host_identity import lock_state_dir
from controller_client.session_files.daemon_status import (
    NAME,
    StatusFile,
    read_status,
)

SERVER = "wss://holdline.example/ws/controller/"
MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


@pytest.fixture
def state_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state directory of a user's own service."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr(service, "manager_of", Unmanaged)
    path = tmp_path / "holdline-controller"
    path.mkdir(0o700)
    return path


@pytest.fixture
def lock(state_dir: Path) -> Iterator[int]:
    """The lock of a daemon, which this process plays."""
    descriptor = lock_state_dir(state_dir)
    yield descriptor
    os.close(descriptor)


@pytest.fixture
def daemon(state_dir: Path, lock: int) -> StatusFile:
    del lock
    return StatusFile(state_dir, version="0.2.0+abc", server=SERVER)


def _told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = main(["service", "status", "--user", *words])
    return code, capsys.readouterr().out


@pytest.mark.parametrize(
    ("state", "why", "code"),
    [
        ("connected", "", 0),
        ("connecting", "", 1),
        ("refused", "the credential is revoked", 1),
        ("unreachable", "cannot connect: [Errno 111]", 1),
        ("unreachable", "an operator has to approve this host", 1),
    ],
)
def test_the_exit_code_and_the_lines_say_how_it_is(
    daemon: StatusFile, capsys: pytest.CaptureFixture[str], state: Any, why: str, code: int
) -> None:
    daemon.tell(state, why)
    told = _told(capsys)
    reason = f": {re.escape(why)}" if why else ""
    pattern = (
        rf"{state} \({re.escape(SERVER)}\) since {MOMENT}{reason}\n"
        rf"version 0\.2\.0\+abc, process {os.getpid()}, started {MOMENT}\nsessions: 0\n"
    )
    assert told[0] == code
    assert re.fullmatch(pattern, told[1]), told[1]
    as_json = _told(capsys, "--json")
    assert as_json[0] == code
    shown = json.loads(as_json[1])
    assert (shown["daemon"]["state"], shown["daemon"]["why"], shown["sessions"]) == (state, why, 0)
    assert set(shown["daemon"]) == {
        "state",
        "why",
        "since",
        "server",
        "version",
        "pid",
        "started",
    }


def test_a_reason_of_two_lines_feigns_no_state(
    daemon: StatusFile, capsys: pytest.CaptureFixture[str]
) -> None:
    daemon.tell("refused", f"no\nconnected ({SERVER}) since 2026-11-23 03:10:17 UTC\x1b[2J")
    code, told = _told(capsys)
    assert (code, len(told.splitlines())) == (1, 3)
    assert "\x1b" not in told


def test_a_host_without_a_daemon_is_not_running_as_often_as_one_asks(
    state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        code, told = _told(capsys)
        assert (code, told.startswith("not running; start it: ")) == (3, True)
        assert json.loads(_told(capsys, "--json")[1]) == {"daemon": None, "sessions": 0}
    state_dir.rmdir()
    # Where nothing was installed, too, and nothing is made there.
    assert _told(capsys)[0] == 3
    assert not state_dir.exists()


def test_what_a_daemon_wrote_that_was_killed_is_not_told(
    state_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = lock_state_dir(state_dir)
    StatusFile(state_dir, version="1", server=SERVER).tell("connected")
    assert _told(capsys)[0] == 0
    os.close(lock)
    assert (state_dir / NAME).exists()
    assert _told(capsys)[0] == 3
    # Nor is it the word of the next daemon, which has not written yet.
    lock = lock_state_dir(state_dir)
    (state_dir / NAME).write_bytes(_written(pid=(1 << 31) - 1))
    assert _told(capsys)[0] == 3
    os.close(lock)


def _written(**changed: Any) -> bytes:
    usual = {"state": "connected", "since": 1, "why": "", "pid": 1, "started": 1}
    return json.dumps({**usual, "version": "1", "server": "s", **changed}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        _written()[:-1],
        _written(state="fine"),
        _written(since=-1),
        _written(since=1e300),
        _written(started=None),
        _written(pid=0),
        _written(pid=-7),
        _written(pid=1 << 32),
        # Nobody has this one.
        _written(pid=(1 << 31) - 1),
    ],
)
def test_what_no_daemon_writes_says_nothing(
    state_dir: Path, daemon: StatusFile, capsys: pytest.CaptureFixture[str], content: bytes
) -> None:
    (state_dir / NAME).write_bytes(content)
    assert read_status(state_dir) is None
    assert _told(capsys)[0] == 3
    # The next change of the state replaces it.
    daemon.tell("connected")
    assert _told(capsys)[0] == 0


def test_what_is_no_plain_file_says_nothing_and_is_waited_for_by_nobody(
    state_dir: Path, daemon: StatusFile, capsys: pytest.CaptureFixture[str]
) -> None:
    file, kept = state_dir / NAME, state_dir / "kept"
    kept.write_bytes(file.read_bytes())
    for make in (
        lambda: os.mkfifo(file),
        lambda: file.symlink_to(kept),
        file.mkdir,
    ):
        file.unlink()
        make()
        assert _told(capsys)[0] == 3
        if file.is_dir():
            file.rmdir()
            file.touch()
    daemon.tell("connected")
    assert _told(capsys)[0] == 0


def test_the_moment_of_a_state_stays_while_only_its_reason_changes(
    state_dir: Path, daemon: StatusFile
) -> None:
    first = read_status(state_dir)
    daemon.tell("unreachable", "once")
    second = read_status(state_dir)
    daemon.tell("unreachable", "twice")
    third = read_status(state_dir)
    assert first is not None
    assert second is not None
    assert third is not None
    assert (second.since, second.why) == (third.since, "once")
    assert third.why == "twice"
    assert first.started == second.started == third.started


def test_a_disk_that_cannot_be_written_leaves_what_was_told_before(
    state_dir: Path, daemon: StatusFile
) -> None:
    daemon.tell("connected")
    # Something that no file can be written over.
    (state_dir / "status.new").mkdir()
    daemon.tell("unreachable", "x")
    status = read_status(state_dir)
    assert status is not None
    assert status.state == "connected"


def test_only_the_user_can_read_what_the_daemon_tells(state_dir: Path, daemon: StatusFile) -> None:
    daemon.tell("connected")
    assert (state_dir / NAME).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "command"),
    [
        ([], "tail -n 50"),
        (["-n", "3"], "tail -n 3"),
        (["-f"], "tail -n 50 -f"),
        (["--follow", "--lines", "0"], "tail -n 0 -f"),
    ],
)
def test_the_log_is_shown_by_the_program_that_has_it(
    state_dir: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], command: str
) -> None:
    (log := state_dir / "daemon.log").touch()
    ran: list[list[str]] = []
    read: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    monkeypatch.setattr(local_sessions, "manager_of", Unmanaged)
    monkeypatch.setattr(os, "dup2", lambda opened, to: read.append((os.fstat(opened).st_ino, to)))
    monkeypatch.setattr(os, "execvp", lambda _program, words: ran.append(words))
    main(["logs", *words])
    assert (ran, read) == ([command.split()], [(log.stat().st_ino, 0)])


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_log_that_is_a_file_does_nothing_to_a_terminal(
    state_dir: Path, is_terminal: bool
) -> None:
    written = b"{}\n\x1b]0;evil\x07\x1b[31m\xe2\x80\xaelog\r\n"
    (state_dir / "daemon.log").write_bytes(written)
    code = (
        "import os, sys; from controller_client.administration import local_sessions, managers;"
        "local_sessions.manager_of = managers.Unmanaged; os.geteuid = lambda: 12345;"
        "from controller_client.cli import main; sys.exit(main(['logs']))"
    )
    command = [sys.executable, "-c", code]
    if not is_terminal:
        done = subprocess.run(command, capture_output=True, check=True)
        assert done.stdout == written
        return
    ours, theirs = os.openpty()
    try:
        subprocess.run(command, stdout=theirs, check=True)
        shown = os.read(ours, 4096)
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown == b"{}\r\n\\u{202e}log\r\n"


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir, lambda log: log.symlink_to("/dev/zero")])
def test_what_is_no_log_is_not_shown_and_nobody_waits_for_it(
    state_dir: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    make: Callable[[Path], None],
) -> None:
    make(log := state_dir / "daemon.log")
    became: list[Path] = []
    monkeypatch.setattr(
        local_sessions,
        "find",
        lambda _options: Installation(False, "ada", state_dir, state_dir / "c.toml"),
    )
    monkeypatch.setattr(local_sessions, "become_owner", became.append)
    monkeypatch.setattr(local_sessions, "manager_of", Unmanaged)
    monkeypatch.setattr(os, "execvp", lambda *_: pytest.fail("it was shown"))
    assert main(["logs", "-f"]) == 78
    assert f"cannot read {log}: this is not a plain file" in capsys.readouterr().err
    # Where root looks, it looks as the user who could have put that there.
    assert became == [state_dir]
