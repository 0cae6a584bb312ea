"""Output in quantity: every byte or an exact gap, a program that waits where it must, and memory
that stays flat.
"""

import hashlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller_client.protocol.codec import encode
from controller_client.protocol.limits import (
    DONE_DRAIN_SECONDS,
    MAX_CHUNK_BYTES,
    SESSION_WINDOW_BYTES,
)
from controller_client.protocol.messages import (
    HolderAttach,
    HolderDetach,
    HolderHello,
    InteractiveOutput,
)
from controller_client.session_files.framing import pack
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.processes import cpu_seconds, is_running, resident_bytes
from tests.support.waiting import await_until

MEGABYTE = 1024 * 1024


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


async def test_a_flood_arrives_whole_and_takes_no_memory(host: HolderHost) -> None:
    talk = await host.run("bash -c 'read x; seq 1 3000000'", ring_bytes=4 * MEGABYTE)
    await talk.prompt()
    holder = host.holder_pid(talk.session_id)
    before = resident_bytes(holder)
    await talk.type(b"\n")
    await talk.until(lambda: talk.offset > 15 * MEGABYTE, "15 MB")
    assert resident_bytes(holder) < before + 9 * MEGABYTE
    done = await talk.done()
    assert talk.gaps == []
    assert done.streams[0].next_offset == len(talk.output)
    assert done.streams[0].sha256 == hashlib.sha256(talk.output).hexdigest()
    assert talk.output == b"\r\n" + b"".join(b"%d\r\n" % number for number in range(1, 3000001))


@pytest.mark.requirement("S3.P1.2", "S3.C1.4")
async def test_frames_stay_within_the_window_and_the_chunk_limit(host: HolderHost) -> None:
    talk = await host.run("seq 1 200000", acks=False)
    await talk.until(lambda: talk.offset >= SESSION_WINDOW_BYTES, "a full window")
    assert talk.offset == SESSION_WINDOW_BYTES
    assert max(len(frame.data) for frame in talk.all_of(InteractiveOutput)) <= MAX_CHUNK_BYTES
    talk.acks = True
    talk.ack()
    await talk.done()
    assert (
        hashlib.sha256(talk.output).hexdigest()
        == talk.all_of(type(await talk.done()))[0].streams[0].sha256
    )


async def test_past_the_ring_the_newest_is_kept_and_the_gap_is_exact(host: HolderHost) -> None:
    session_id = await host.spawn("seq 1 200000", ring_bytes=100_000)
    await await_until(lambda: _ended(host, session_id), 55, "the program to end unheard")
    talk = await host.talk(session_id)
    talk.attach()
    done = await talk.done()
    whole = b"".join(b"%d\r\n" % number for number in range(1, 200001))
    assert [(gap.from_offset, gap.to_offset, gap.reason) for gap in talk.gaps] == [
        (0, len(whole) - 100_000, "ring_overflow")
    ]
    assert talk.output == whole[-100_000:]
    assert done.streams[0].sha256 == hashlib.sha256(whole).hexdigest()


async def test_a_blocking_ring_makes_the_program_wait_and_loses_nothing(host: HolderHost) -> None:
    session_id = await host.spawn("seq 1 100000", ring_bytes=50_000, overflow="block")
    await await_until(lambda: _has_produced(host, session_id, 50_000), 55, "the ring to be full")
    assert not await _ended(host, session_id)
    talk = await host.talk(session_id)
    talk.attach()
    done = await talk.done()
    assert talk.gaps == []
    assert done.streams[0].sha256 == hashlib.sha256(talk.output).hexdigest()
    assert len(talk.output.splitlines()) == 100_000


async def test_an_ended_program_keeps_what_a_full_blocking_ring_had_no_room_for(
    host: HolderHost,
) -> None:
    session_id = await host.spawn("bash -c 'seq 1 3000'", ring_bytes=5_000, overflow="block")
    await await_until(lambda: _has_produced(host, session_id, 5_000), 55, "the ring to be full")
    pid = host.directory(session_id).read_pid()
    assert pid is not None
    await await_until(lambda: not is_running(pid), 55, "the program to end")
    talk = await host.talk(session_id)
    assert talk.all_of(HolderHello)[0].summary.state == "running"
    before = cpu_seconds(host.holder_pid(session_id))
    # Longer than a terminal that is held open may delay the end.
    await talk.nothing_for(DONE_DRAIN_SECONDS + 0.5)
    assert cpu_seconds(host.holder_pid(session_id)) < before + 0.5
    talk.attach()
    done = await talk.done()
    assert (done.notes, talk.gaps) == ([], [])
    assert talk.output == b"".join(b"%d\r\n" % number for number in range(1, 3001))


async def test_a_slow_daemon_slows_the_program_down_and_loses_no_byte(host: HolderHost) -> None:
    talk = await host.run("bash -c 'read x; seq 1 400000'", acks=False, ring_bytes=512 * 1024)
    # Only while a daemon is attached does the program wait for it.
    await talk.prompt()
    talk.type_later(b"\n")
    while talk.offset < 2 * MEGABYTE:
        reached = talk.offset
        talk.ack()
        await talk.until(lambda reached=reached: talk.offset > reached, "more output")
    talk.acks = True
    talk.ack()
    done = await talk.done()
    assert talk.gaps == []
    assert done.streams[0].sha256 == hashlib.sha256(talk.output).hexdigest()


async def test_a_server_that_stops_taking_output_does_not_stop_the_program(
    host: HolderHost,
) -> None:
    talk = await host.run("seq 1 200000", acks=False, ring_bytes=512 * 1024)
    await await_until(
        lambda: _ended(host, talk.session_id, watch=talk),
        55,
        "the program to end although nobody acknowledges",
    )


async def test_a_daemon_that_reads_nothing_does_not_hold_up_the_lifetime(host: HolderHost) -> None:
    session_id = await host.spawn("yes", io_mode="pipe", overflow="block", lifetime_seconds=2)
    directory = host.directory(session_id)
    pid = await await_until(directory.read_pid, 55, "the program to run")
    with directory.connect() as daemon:
        attach = HolderAttach(session_id=session_id, window_bytes=64 * MEGABYTE, offsets=[])
        daemon.sendall(pack(encode(attach)))
        # A holder that does not know the moment looks at its clock every 15 seconds.
        await await_until(lambda: not is_running(pid), 10, "the end of the lifetime")


async def test_detached_output_is_coalesced_after_the_reattach(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'read x; for i in $(seq 50); do echo $i; sleep 0.01; done; read y'"
    )
    await talk.prompt()
    talk.send(HolderDetach(session_id=talk.session_id))
    talk.type_later(b"\n")
    await talk.until(lambda: talk.all_of(InteractiveOutput), "the prompt's frame")
    talk.attach(0)
    await talk.until(lambda: b"50\r\n" in talk.output, "the last line")
    assert (await talk.prompt()).input_seq == 1


async def test_ordinary_output_is_not_sent_byte_by_byte(host: HolderHost) -> None:
    talk = await host.run("bash -c 'for i in $(seq 300); do echo $i; done; sleep 0.2'")
    await talk.done()
    assert len([frame for frame in talk.all_of(InteractiveOutput) if frame.data]) < 60


async def test_no_escape_sequence_ends_the_session_of_who_prints_it(host: HolderHost) -> None:
    argv = [sys.executable, "-c", "print('\\x1b[' + '1' * 5000 + 'H', end='end')"]
    talk = await host.run("", argv=argv)
    done = await talk.done()
    assert (done.end_reason, done.exit_code) == ("exited", 0)
    assert talk.output.endswith(b"Hend")


async def test_binary_output_is_kept_byte_for_byte(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'stty raw -opost; head -c 300000 /dev/urandom | tee >(sha256sum >&2) | cat; "
        "sleep 0.3' 2>/dev/null"
    )
    done = await talk.done()
    assert done.streams[0].sha256 == hashlib.sha256(talk.output).hexdigest()
    assert len(talk.output) >= 300_000


async def _hello(host: HolderHost, session_id: str) -> HolderHello:
    look = await host.talk(session_id)
    hello = look.all_of(HolderHello)[0]
    await look.close()
    return hello


async def _has_produced(host: HolderHost, session_id: str, offset: int) -> bool:
    return (await _hello(host, session_id)).summary.streams[0].next_offset >= offset


async def _ended(host: HolderHost, session_id: str, watch: Conversation | None = None) -> bool:
    if watch is not None:
        return host.directory(session_id).read_done() is not None
    return (await _hello(host, session_id)).summary.state == "done"
