"""A host without a service manager starts a daemon that may run programs as another user."""

import os
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller_client.administration import installation
from controller_client.administration.doctor.users import examine_users
from controller_client.administration.installation import Installation
from controller_client.administration.managers import Unmanaged
from controller_client.session_files.daemon_status import DaemonStatus, read_status
from controller_client.system.users.two_users import can_become_others
from tests.support.accounts import (
    Account,
    host_libraries,
    interpreter_for,
    ordinary_user,
    requires_root,
)
from tests.support.processes import children_of, pids_mentioning
from tests.support.waiting import wait_until

# The command that starts the daemon does not wait for the shell that keeps it.
pytestmark = pytest.mark.filterwarnings("ignore:subprocess:ResourceWarning")


@pytest.fixture
def place(
    tmp_path_factory: pytest.TempPathFactory, sudoer: Account, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Installation]:
    """A host of root's: its policy names the user of programs, and its server is away."""
    requires_root()
    with ordinary_user("k") as keeper:
        root = keeper.home / "host"
        (state := root / "state").mkdir(parents=True)
        command, policy, config = root / "command", root / "policy.toml", root / "controller.toml"
        run = [interpreter_for(keeper), "-m", "controller_client"]
        command.write_text(
            f'#!/bin/sh\nexport PYTHONPATH={host_libraries()}\nexec {shlex.join(run)} "$@"\n'
        )
        policy.write_text(f'[users]\nrun_as = "{sudoer.name}"\n')
        config.write_text(
            f'server = "http://127.0.0.1:9"\nstate_dir = "{state}"\npolicy = "{policy}"\n'
        )
        (state / "credential").write_text(f"ctl_abc123_{'s' * 43}\n")
        for file, mode in ((command, 0o755), (policy, 0o644), (config, 0o644)):
            file.chmod(mode)
        for path, mode in ((state, 0o700), (state / "credential", 0o600)):
            os.chown(path, keeper.uid, keeper.gid)
            path.chmod(mode)
        monkeypatch.setattr(installation, "command_path", lambda: command)
        yield Installation(is_system=True, user=keeper.name, state_dir=state, config_file=config)


@pytest.fixture
def manager(place: Installation) -> Iterator[Unmanaged]:
    """Keeps the daemon running, which has started."""
    manager = Unmanaged(place)
    manager.start()
    wait_until(lambda: bool(_fork_server(place)), 90, "the fork server")
    yield manager
    manager.stop()
    wait_until(lambda: not _kept_by(place), 90, "the end of the shell that keeps the daemon")
    # subprocess reaps children that nobody waits for when it starts the next one.
    subprocess.run(["true"], check=True)


def test_the_daemon_gets_the_rights_and_its_fork_server_alone_keeps_them(
    manager: Unmanaged,
) -> None:
    place, status = manager.place, _status(manager.place)
    (fork_server,) = _fork_server(place)
    wait_until(lambda: not can_become_others(status.pid), 90, "the daemon to drop the rights")
    assert can_become_others(fork_server)
    (shell,) = _kept_by(place)
    assert Path(f"/proc/{shell}").stat().st_uid == 0, "the daemon can become its shell"
    policy = place.config_file.with_name("policy.toml")
    found, _ = examine_users(place.state_dir, policy, status)
    assert (found.level, found.text.startswith("programs run as")) == ("ok", True)


@pytest.mark.parametrize("whom", ["daemon", "fork server"])
def test_a_daemon_that_ends_by_itself_is_started_again(manager: Unmanaged, whom: str) -> None:
    place, first = manager.place, _status(manager.place).pid
    os.kill(first if whom == "daemon" else _fork_server(place)[0], signal.SIGKILL)
    wait_until(lambda: _pid(place) not in {None, first}, 60, "another daemon")
    wait_until(lambda: bool(_fork_server(place)), 90, "its fork server")
    assert can_become_others(_fork_server(place)[0])
    manager.start()
    # The daemon may have begun so lately that it could not end in order. Then its shell tries once
    # more, which the new daemon's lock ends.
    wait_until(lambda: len(_kept_by(place)) == 1, 90, "one shell that keeps the daemon")


def test_a_daemon_that_was_stopped_is_not_started_again(manager: Unmanaged) -> None:
    place = manager.place
    os.kill(_status(place).pid, signal.SIGKILL)
    wait_until(lambda: _pid(place) is None, 90, "the end of the daemon")
    manager.stop()
    wait_until(lambda: not _kept_by(place), 90, "the end of the shell")
    assert _pid(place) is None


def _pid(place: Installation) -> int | None:
    status = read_status(place.state_dir)
    return None if status is None else status.pid


def _kept_by(place: Installation) -> list[int]:
    """The shells that start the daemon of ``place`` again."""
    return pids_mentioning(str(place.state_dir / "keep-running"))


def _status(place: Installation) -> DaemonStatus:
    status = read_status(place.state_dir)
    assert status is not None
    return status


def _fork_server(place: Installation) -> list[int]:
    status = read_status(place.state_dir)
    return [] if status is None else list(children_of(status.pid))
