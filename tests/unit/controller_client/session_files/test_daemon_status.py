"""The status file says how the daemon is doing, and is believed only while a daemon runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from controller_client.server_link.host_identity import lock_state_dir
from controller_client.session_files.daemon_status import StatusFile, read_status


def test_a_change_is_told_and_a_repetition_keeps_its_time(tmp_path: Path) -> None:
    lock = lock_state_dir(tmp_path)
    file = StatusFile(tmp_path, version="1", server="wss://s/")
    first = read_status(tmp_path)
    assert first is not None
    assert (first.state, first.pid) == ("connecting", os.getpid())
    file.tell("unreachable", "no route")
    told = read_status(tmp_path)
    assert told is not None
    file.tell("unreachable", "refused")
    again = read_status(tmp_path)
    assert again is not None
    assert (again.why, again.since) == ("refused", told.since)
    assert (tmp_path / "status.json").stat().st_mode & 0o777 == 0o600
    os.close(lock)


def test_what_a_daemon_wrote_is_not_believed_after_its_end(tmp_path: Path) -> None:
    lock = lock_state_dir(tmp_path)
    file = StatusFile(tmp_path, version="1", server="wss://s/")
    os.close(lock)
    assert read_status(tmp_path) is None
    # Its successor has the lock and has written nothing yet.
    lock = lock_state_dir(tmp_path)
    file.remove()
    assert read_status(tmp_path) is None
    os.close(lock)


def test_what_a_killed_daemon_wrote_is_not_its_successors(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; "
        "from controller_client.session_files.daemon_status import StatusFile; "
        "StatusFile(Path(sys.argv[1]), version='1', server='s')"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    lock = lock_state_dir(tmp_path)
    assert (tmp_path / "status.json").exists()
    assert read_status(tmp_path) is None
    os.close(lock)


@pytest.mark.parametrize(
    "content",
    [
        b'{"state":"\xff"}',
        b"[" * 200_000,
        b'{"state":"connected","since":1,"why":"","pid":%s,"started":1,"version":"","server":""}'
        % (b"9" * 30),
        b'{"state":"connected","since":1e300,"why":"","pid":1,"started":1,"version":"","server":""}',
    ],
    ids=["no_text", "nested_for_ever", "no_process", "no_moment"],
)
def test_what_a_program_wrote_in_its_place_is_no_status(tmp_path: Path, content: bytes) -> None:
    lock = lock_state_dir(tmp_path)
    (tmp_path / "status.json").write_bytes(content)
    assert read_status(tmp_path) is None
    os.close(lock)
