"""What a program may use and how long it may run, and a control group nothing escapes from."""

import os
import resource
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from controller_client.holder.session_end import NOTE_UNRECORDED
from controller_client.protocol.messages import (
    Admission,
    CommandResult,
    InteractiveCmdDone,
    ProjectRules,
    ResourceLimits,
)
from controller_client.server_link.holders.fork_server import Spawner
from controller_client.system.control_group import SessionGroup, is_usable
from tests.support.hosts.holders import HolderHost, holder_host
from tests.support.processes import is_running
from tests.support.waiting import await_until

# Where the host's cgroup v2 hierarchy is, alone or beside the older ones.
_MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
HIERARCHY = next((path for path in _MOUNTS if (path / "cgroup.subtree_control").exists()), None)
CAN_MAKE_GROUPS = HIERARCHY is not None and os.geteuid() == 0 and os.access(HIERARCHY, os.W_OK)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_limits_hold_for_what_a_program_starts_too(host: HolderHost, io_mode: str) -> None:
    limits = ResourceLimits(
        processes=4000, memory_bytes=1 << 32, file_size_bytes=1 << 20, open_files=99
    )
    talk = await host.run(
        "bash -c 'ulimit -u; ulimit -v; ulimit -f; ulimit -n; ulimit -c; ulimit -Hn'",
        io_mode=io_mode,
        limits=limits,
    )
    await talk.done()
    assert bytes(talk.output).split() == [b"4000", b"4194304", b"1024", b"99", b"0", b"99"]


@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_a_program_that_keeps_its_user_and_its_children_gain_no_privileges(
    host: HolderHost, io_mode: str
) -> None:
    for keeps_user, flag in ((True, b"1"), (False, b"0")):
        admission = Admission(keeps_user=keeps_user)
        talk = await host.run(
            "sh -c 'grep NoNewPrivs /proc/self/status; true'", io_mode=io_mode, admission=admission
        )
        await talk.done()
        assert bytes(talk.output).split() == [b"NoNewPrivs:", flag]


async def test_strict_recording_ends_unrecorded_programs_but_not_silent_ones(
    host: HolderHost,
) -> None:
    rules = ProjectRules(strict_seconds=1)
    silent = await host.run("sleep 1000", acks=False, rules=rules)
    ended = await host.run("echo a; exec sleep 1000", acks=False, rules=rules)
    done = await ended.done()
    assert (done.end_reason, done.notes, done.signal) == (
        "terminated",
        [NOTE_UNRECORDED],
        "SIGTERM",
    )
    assert bytes(ended.output).split() == [b"a"]
    # Late, but still: who records goes on.
    slow = await host.run("cat", rules=rules)
    await slow.shows(b"")
    assert not silent.all_of(InteractiveCmdDone)
    assert not slow.all_of(InteractiveCmdDone)


async def test_without_limits_a_program_has_what_the_daemon_has_and_never_a_core(
    host: HolderHost,
) -> None:
    talk = await host.run_once("ulimit -n; ulimit -c")
    await talk.get(CommandResult)
    assert bytes(talk.output).split() == [
        b"%d" % resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        b"0",
    ]


async def test_a_file_that_grows_too_large_ends_its_writer(
    host: HolderHost, tmp_path: Path
) -> None:
    path = tmp_path / "big"
    limits = ResourceLimits(file_size_bytes=1000)
    talk = await host.run_once(argv=["head", "-c", "1000000", "/dev/zero"], limits=limits)
    assert (await talk.get(CommandResult)).exit_code == 0, "output is no file"
    talk = await host.run_once(
        argv=["dd", "if=/dev/zero", f"of={path}", "bs=100", "count=100"],
        limits=ResourceLimits(file_size_bytes=1000),
    )
    result = await talk.get(CommandResult)
    assert (result.signal, path.stat().st_size) == ("SIGXFSZ", 1000)


async def test_memory_over_the_limit_is_not_to_be_had(host: HolderHost) -> None:
    command = [sys.executable, "-c", "bytearray(400 << 20)"]
    talk = await host.run_once(argv=command, limits=ResourceLimits(memory_bytes=300 << 20))
    assert (await talk.get(CommandResult)).exit_code == 1
    assert b"MemoryError" in talk.outputs["stderr"]


@pytest.fixture
def groups() -> Iterator[Path]:
    """A control group of the test's own."""
    assert HIERARCHY is not None
    root = HIERARCHY / f"holdline-test-{uuid4()}"
    root.mkdir()
    yield root
    for left in root.iterdir():
        if left.is_dir():
            left.rmdir()
    root.rmdir()


@pytest.mark.skipif(
    not CAN_MAKE_GROUPS, reason="makes control groups, which needs a cgroup v2 hierarchy"
)
@pytest.mark.parametrize("io_mode", ["pipe", "pty"])
async def test_a_sessions_control_group_has_its_program_but_not_its_holder(
    tmp_path: Path,
    groups: Path,
    io_mode: str,
) -> None:
    assert is_usable(groups)
    async with holder_host(tmp_path) as host:
        await host.spawner.close()
        host.spawner = Spawner(tmp_path, groups)
        # Without its cookie, in a session of its own, adopted by nobody: only the group still knows
        # the sleeper.
        command = "env -i setsid sh -c 'trap \"\" TERM HUP; echo up; sleep 1000 & wait'"
        talk = await host.run(f"{command} & wait", io_mode=io_mode)
        await talk.shows(b"up")
        group = SessionGroup.of(groups, talk.session_id)
        members = group.pids()
        assert len(members) >= 3
        assert host.holder_pid(talk.session_id) not in members
        await talk.terminate(signal="SIGTERM", grace_seconds=0.2)
        done = await talk.done()
        assert (done.end_reason, done.survivors) == ("terminated", [])
        assert [pid for pid in members if is_running(pid)] == []
        await await_until(lambda: not group.path.exists(), 55, "the group to be removed")


@pytest.mark.requirement("S3.R3.3")
async def test_a_lifetime_that_is_over_ends_the_session(host: HolderHost) -> None:
    talk = await host.run("sleep 60", lifetime_seconds=0.5)
    done = await talk.done()
    assert (done.end_reason, done.signal, done.survivors) == ("timed_out", "SIGTERM", [])
    assert 0.5 <= done.duration_seconds < 5


async def test_a_stopped_clock_outlives_the_daemon_and_runs_out_by_itself(host: HolderHost) -> None:
    talk = await host.run("sleep 60", lifetime_seconds=2)
    ack = await talk.pause_lifetime(is_paused=True, max_seconds=1.5)
    assert ack.lifetime is not None
    assert ack.lifetime.is_paused
    assert 0 < ack.lifetime.left_seconds <= 2
    assert ack.lifetime.pause_left_seconds <= 1.5
    await talk.close()
    again = await host.talk(talk.session_id)
    again.attach()
    done = await again.done()
    assert done.end_reason == "timed_out"
    assert done.duration_seconds >= 3.5


async def test_a_resumed_lifetime_ends_the_session_and_a_stale_pause_is_ignored(
    host: HolderHost,
) -> None:
    talk = await host.run("sleep 60", lifetime_seconds=2)
    await talk.pause_lifetime(is_paused=True, max_seconds=3600, seq=100)
    went_on = await talk.pause_lifetime(is_paused=False, max_seconds=3600, seq=101)
    late = await talk.pause_lifetime(is_paused=True, max_seconds=3600, seq=99)
    for ack in (went_on, late):
        assert ack.lifetime is not None
        assert not ack.lifetime.is_paused
    done = await talk.done()
    assert done.end_reason == "timed_out"
    assert (
        await talk.pause_lifetime(is_paused=True, max_seconds=3600, seq=102)
    ).failure is not None


async def test_an_end_that_the_disk_does_not_take_is_recorded_later(host: HolderHost) -> None:
    talk = await host.run("read x", io_mode="pipe")
    holder, directory = host.holder_pid(talk.session_id), host.directory(talk.session_id)
    before = resource.prlimit(holder, resource.RLIMIT_FSIZE)
    resource.prlimit(holder, resource.RLIMIT_FSIZE, (0, before[1]))
    await talk.type(b"\n")
    await talk.done()
    tried = directory.path / "done.json.new"
    await await_until(tried.exists, 55, "the end to be written in vain")
    assert directory.read_done() is None
    resource.prlimit(holder, resource.RLIMIT_FSIZE, before)
    assert await await_until(directory.read_done, 55, "the end to be on disk") is not None
