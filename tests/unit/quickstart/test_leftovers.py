"""The quickstart waits for the confirmation of sessions that have ended before it ends."""

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from controller_client.protocol.messages import StartInteractiveCmd
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from quickstart.server.leftovers import wait_until_reported
from tests.support.waiting import wait_until

MOMENT_SECONDS = 0.3


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "controller"


def session(state_dir: Path, pid: int) -> SessionDirectory:
    start = StartInteractiveCmd(seq=1, session_id="one", command="true")
    assert create(state_dir, start)
    directory = directory_of(state_dir, "one")
    directory.write_pid(pid)
    return directory


def test_an_end_that_is_not_recorded_yet_is_waited_for(state_dir: Path) -> None:
    program = subprocess.Popen([sys.executable, "-c", ""])
    directory = session(state_dir, program.pid)
    wait_until(lambda: Path(f"/proc/{program.pid}/stat").read_text().split()[2] == "Z", 10, "Z")
    lock = directory.lock()
    assert lock is not None

    server = threading.Timer(MOMENT_SECONDS, directory.remove)
    server.start()
    wait_until_reported(state_dir)
    assert not directory.path.exists()
    server.join()
    program.wait()
