"""The holder's conversation: a program is started once, talked to over the socket, and found again
by the next daemon.
"""

import asyncio
import os
import resource
import stat
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from controller_client.protocol.messages import (
    Error,
    HolderAttach,
    HolderDetach,
    HolderHello,
    InteractiveCmdDone,
    Started,
    StreamOffset,
)
from controller_client.session_files.directory import create
from controller_client.system.start_failure import StartFailed
from tests.support.hosts.holders import HolderHost, holder_host, holders_of
from tests.support.processes import (
    children_of,
    is_running,
    open_descriptors,
    pause,
    pids_with_environment,
    proportional_bytes,
    status_field,
)
from tests.support.waiting import await_until


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


@pytest.mark.requirement("S3.P1.1", "S3.P1.4", "S3.R1.2", "S3.R2.2", "S3.D2.1")
async def test_a_dialogue_reports_each_prompt_and_then_the_exit_code(host: HolderHost) -> None:
    talk = await host.run(
        """bash -c 'read -p "Name: " n; read -s -p "Password: " p; echo; """
        """echo "hello $n/$p"; exit 7'"""
    )
    name = await talk.prompt()
    assert (name.kind, name.evidence, name.prompt) == ("line", "kernel", "Name: ")
    ack = await talk.type(b"joe\n")
    assert (ack.failure, ack.accepted_bytes) == (None, 4)
    password = await talk.prompt()
    assert (password.kind, password.input_seq) == ("secret", 1)
    await talk.type(secret=b"hunter2\n")
    done = await talk.done()
    assert (done.end_reason, done.exit_code, done.signal, done.survivors, done.notes) == (
        "exited",
        7,
        None,
        [],
        [],
    )
    assert talk.output == b"Name: joe\r\nPassword: \r\nhello joe/******\r\n"
    assert done.streams[0].next_offset == len(talk.output)


@pytest.mark.requirement("S3.P1.3")
async def test_the_answer_to_an_input_travels_with_its_verdict(host: HolderHost) -> None:
    talk = await host.run("""bash -c 'while read -p "> " line; do echo "got $line"; done'""")
    await talk.prompt()
    for number in range(20):
        await talk.type(b"%d\n" % number)
        report = await talk.prompt()
        assert report.input_seq == number + 1
        assert talk.output.endswith(b"got %d\r\n> " % number)


async def test_a_daemon_that_dies_is_replaced_and_every_byte_is_there_again(
    host: HolderHost,
) -> None:
    session_id = await host.spawn("bash -c 'echo before; read x; echo after $x; read y'")
    first = await host.talk(session_id)
    first.attach()
    await first.prompt()
    await first.close()
    second = await host.talk(session_id)
    summary = second.all_of(HolderHello)[0].summary
    assert (summary.state, summary.input_seq, summary.streams[0].next_offset) == ("running", 0, 8)
    second.attach(8)
    await second.get(Started)
    # The verdict is told again to somebody who did not hear it.
    await second.prompt()
    await second.type(b"now\n")
    await second.prompt()
    assert second.output == b"now\r\nafter now\r\n"


async def test_a_newcomer_replaces_the_daemon_that_was_connected(host: HolderHost) -> None:
    session_id = await host.spawn("cat")
    old = await host.talk(session_id)
    old.attach()
    new = await host.talk(session_id)
    await old.until(lambda: old.is_closed, "the old connection to be closed")
    new.attach()
    await new.prompt()


async def test_output_produced_while_detached_waits_in_the_ring(host: HolderHost) -> None:
    talk = await host.run("bash -c 'read x; seq 1 1000; read y'")
    await talk.prompt()
    talk.send(HolderDetach(session_id=talk.session_id))
    talk.type_later(b"\n")
    summary = (
        await await_until(
            lambda: _hello_past(host, talk.session_id, 3000), 55, "output in the ring"
        )
    ).summary
    again = await host.talk(talk.session_id)
    again.attach(summary.streams[0].first_offset)
    await again.prompt()
    assert bytes(again.output).split()[-1] == b"1000"


async def _hello_past(host: HolderHost, session_id: str, offset: int) -> HolderHello | None:
    look = await host.talk(session_id)
    hello = look.all_of(HolderHello)[0]
    await look.close()
    return hello if hello.summary.streams[0].next_offset > offset else None


async def test_the_end_is_reported_until_acknowledged_then_the_directory_goes(
    host: HolderHost,
) -> None:
    session_id = await host.spawn("echo bye")
    first = await host.talk(session_id, acks=False)
    first.attach()
    await first.done()
    await first.close()
    directory = host.directory(session_id)
    recorded = await await_until(directory.read_done, 55, "the end to be on disk")
    second = await host.talk(session_id)
    assert second.all_of(HolderHello)[0].summary.state == "done"
    second.attach()
    done = await second.done()
    assert done == recorded
    assert second.output == b"bye\r\n"
    second.forget()
    await await_until(lambda: not directory.path.exists(), 55, "the directory to be removed")


async def test_bytes_that_were_acknowledged_and_are_asked_for_again_are_a_gap(
    host: HolderHost,
) -> None:
    first = await host.run("bash -c 'echo gone; read x; echo kept'")
    await first.prompt()
    again = await host.talk(first.session_id)
    again.attach(0)
    await again.type(b"\n")
    await again.done()
    assert [(gap.from_offset, gap.to_offset, gap.reason) for gap in again.gaps] == [(0, 6, "lost")]
    assert again.output == b"\r\nkept\r\n"


async def test_a_session_is_created_once_and_its_files_are_nobody_elses(
    host: HolderHost, tmp_path: Path
) -> None:
    session_id = await host.spawn("cat")
    start = host.directory(session_id).read_start()
    assert start is not None
    assert start.command == "cat"
    assert create(tmp_path, start) is False
    assert stat.S_IMODE(host.directory(session_id).path.stat().st_mode) == 0o700
    assert stat.S_IMODE((host.directory(session_id).path / "start.json").stat().st_mode) == 0o600


async def test_a_holder_does_not_start_a_program_that_was_declared_lost(
    host: HolderHost, tmp_path: Path
) -> None:
    session_id = (await host.run("cat")).session_id
    holder = host.holder_pid(session_id)
    directory = host.directory(session_id)
    os.kill(holder, 9)
    await await_until(lambda: not directory.is_holder_alive(), 55, "the holder to die")
    start = directory.read_start()
    assert start is not None
    directory.write_done(InteractiveCmdDone(session_id=session_id, end_reason="lost"))
    (directory.path / "pid").unlink()
    with pytest.raises(StartFailed):
        await host.spawner.spawn(start)
    assert not (directory.path / "pid").exists()


async def test_a_state_directory_with_a_long_name_works(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 120)
    deep.mkdir()
    async with holder_host(deep) as host:
        talk = await host.run("echo deep")
        await talk.done()
        assert talk.output == b"deep\r\n"


async def test_a_broken_frame_is_answered_with_an_error_and_the_session_lives(
    host: HolderHost,
) -> None:
    talk = await host.run("cat")
    talk._writer.write(b"\x00\x00\x00\x05hello")
    assert (await talk.get(Error)).code == "BAD_FRAME"
    await talk.until(lambda: talk.is_closed, "the connection to be closed")
    again = await host.talk(talk.session_id)
    again.attach(0)
    await again.prompt()


async def test_an_offset_that_was_never_reached_is_refused(host: HolderHost) -> None:
    talk = await host.run("cat")
    where = StreamOffset(session_id=talk.session_id, stream="stdout", offset=1 << 40)
    talk.send(HolderAttach(session_id=talk.session_id, window_bytes=1 << 18, offsets=[where]))
    assert (await talk.get(Error)).code == "LOCAL_PROTOCOL_ERROR"


async def test_holders_lead_sessions_of_their_own_and_outlive_the_spawner(host: HolderHost) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    holder = host.holder_pid(talk.session_id)
    assert os.getsid(holder) == holder
    await host.spawner.close()
    await talk.type(b"still here\n")
    await talk.shows(b"still here\r\nstill here")
    await host.spawner.start()


async def test_a_holder_that_ended_leaves_no_zombie(host: HolderHost) -> None:
    process = host.spawner._process
    assert process is not None
    talk = await host.run("bash -c 'read x'")
    await talk.prompt()
    holder = host.holder_pid(talk.session_id)
    await talk.type(b"\n")
    await talk.done()
    talk.forget()

    def is_only_the_spare_left() -> bool:
        children = children_of(process.pid)
        return holder not in children and len(children) <= 1

    await await_until(
        is_only_the_spare_left,
        55,
        "the fork server to have no child but the spare, not even a dead one",
    )


async def test_the_next_holder_is_ready_before_it_is_asked_for(host: HolderHost) -> None:
    process = host.spawner._process
    assert process is not None
    await await_until(lambda: holders_of(process.pid), 55, "a spare")
    (spare,) = holders_of(process.pid)
    first = await host.run("cat")
    assert host.holder_pid(first.session_id) == spare
    await await_until(lambda: holders_of(process.pid) - {spare}, 55, "the next spare")
    await host.spawner.close()
    await await_until(
        lambda: not holders_of(process.pid) - {spare}, 55, "the spare to end with its fork server"
    )
    await first.type(b"unharmed\n")
    await first.shows(b"unharmed\r\nunharmed")


async def test_a_holder_without_a_free_descriptor_waits_for_one(host: HolderHost) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    holder = host.holder_pid(talk.session_id)
    before = resource.prlimit(holder, resource.RLIMIT_NOFILE)
    lowest_free = min(set(range(256)) - set(open_descriptors(holder)))
    resource.prlimit(holder, resource.RLIMIT_NOFILE, (lowest_free, before[1]))
    asleep = 0

    def is_at_rest() -> bool:
        """Looks of a row at which it slept: one that went round and round would not, once it had
        noticed the connection.
        """
        nonlocal asleep
        asleep = asleep + 1 if (status_field(holder, "State") or "").startswith("S") else 0
        return asleep >= 20

    with host.directory(talk.session_id).connect():
        await await_until(is_at_rest, 55, "the holder to sleep with a daemon at its door")
    resource.prlimit(holder, resource.RLIMIT_NOFILE, before)
    again = await host.talk(talk.session_id)
    again.attach(0)
    await again.prompt()


async def test_what_a_program_stopped_goes_on_at_the_next_start_and_at_the_end(
    host: HolderHost,
) -> None:
    process = host.spawner._process
    assert process is not None
    await await_until(lambda: holders_of(process.pid), 55, "a spare")
    (spare,) = holders_of(process.pid)
    pause(spare)
    pause(process.pid)
    talk = await host.run("cat")
    assert host.holder_pid(talk.session_id) == spare
    await await_until(lambda: holders_of(process.pid) - {spare}, 55, "the next spare")
    (spare,) = holders_of(process.pid) - {spare}
    pause(spare)
    pause(process.pid)
    await host.spawner.close()
    assert process.returncode == 0
    await await_until(partial(_is_gone, spare), 55, "the spare to end")


def _is_gone(pid: int) -> bool:
    return not is_running(pid)


async def test_a_spawner_that_was_killed_is_started_again(host: HolderHost) -> None:
    await host.run("true")
    process = host.spawner._process
    assert process is not None
    process.kill()
    await process.wait()
    talk = await host.run("echo again")
    await talk.done()
    assert talk.output == b"again\r\n"


async def test_the_program_sees_a_clean_environment_and_three_descriptors(
    host: HolderHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "leak")
    talk = await host.run(
        "bash -c 'env; ls -l /proc/self/fd; ulimit -c; umask; trap'", env={"GREETING": "hi there"}
    )
    await talk.done()
    text = talk.output.decode()
    names = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
    assert {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TERM",
        "HOLDLINE_SESSION",
        "GREETING",
    } <= names
    assert names <= {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TERM",
        "HOLDLINE_SESSION",
        "GREETING",
        "PWD",
        "SHLVL",
        "_",
        "OLDPWD",
    }
    assert "leak" not in text
    # 3 is the directory that ls reads.
    assert [line.split()[8] for line in text.splitlines() if " -> " in line] == ["0", "1", "2", "3"]
    assert "0022" in text
    other = await host.run("cat")
    assert pids_with_environment(b"AWS_SECRET_ACCESS_KEY=leak") == []
    assert host.holder_pid(other.session_id) not in pids_with_environment(
        f"HOLDLINE_SESSION={other.session_id}".encode()
    )


async def test_a_hundred_idle_holders_take_little_memory(host: HolderHost) -> None:
    talks = []
    for _ in range(30):
        talk = await host.run("cat")
        await talk.prompt()
        talks.append(talk)
    holders = [host.holder_pid(talk.session_id) for talk in talks]
    assert max(proportional_bytes(pid) for pid in holders) < 8 * 1024 * 1024
    assert all(len(children_of(pid)) == 1 for pid in holders)


async def test_many_sessions_start_at_once(host: HolderHost) -> None:
    talks = await asyncio.gather(*(host.run(f"echo {number}") for number in range(20)))
    for number, talk in enumerate(talks):
        await talk.done()
        assert talk.output == b"%d\r\n" % number
