"""Programs on pipes: two streams, an input that ends, signals for keys, and one-shots that come to
an end whatever happens.
"""

import hashlib
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controller_client.protocol.limits import MAX_STDIN_BYTES, SESSION_WINDOW_BYTES
from controller_client.protocol.messages import (
    CommandResult,
    HolderHello,
    InteractiveCmdDone,
    InteractiveOutput,
    Started,
)
from controller_client.system.process_tree import session_members
from controller_client.system.termination import MAX_SURVIVORS
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.processes import resident_bytes
from tests.support.waiting import await_until

MEGABYTE = 1024 * 1024


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


def _written(talk: Conversation) -> list[tuple[str, bytes]]:
    return [(frame.stream, frame.data) for frame in talk.all_of(InteractiveOutput)]


def _assert_whole(talk: Conversation, done: InteractiveCmdDone) -> None:
    assert talk.gaps == []
    for final in done.streams:
        assert (final.next_offset, final.sha256) == (
            len(talk.outputs[final.stream]),
            hashlib.sha256(talk.outputs[final.stream]).hexdigest(),
        )


async def test_of_many_programs_that_are_left_only_some_are_named(host: HolderHost) -> None:
    leave = "setsid sleep 60 < /dev/null > /dev/null 2>&1 &"
    talk = await host.run(f"bash -c 'for n in {{1..50}}; do {leave} done'", io_mode="pipe")
    done = await talk.done()
    assert (done.exit_code, done.notes, len(done.survivors)) == (
        0,
        ["left_running"],
        MAX_SURVIVORS,
    )


async def test_a_one_shot_reads_its_input_to_the_end_and_ends_with_a_result(
    host: HolderHost,
) -> None:
    talk = await host.run_once("sort", input=b"b\na\n")
    result = await talk.get(CommandResult)
    assert (result.exit_code, result.end_reason, result.timed_out) == (0, "exited", False)
    assert (bytes(talk.output), talk.outputs["stderr"]) == (b"a\nb\n", b"")
    assert result.duration_ms == round(result.duration_seconds * 1000)
    _assert_whole(talk, result)


async def test_a_one_shot_without_input_reads_from_dev_null(host: HolderHost) -> None:
    talk = await host.run_once("cat; readlink /proc/self/fd/0")
    await talk.get(CommandResult)
    assert talk.output == b"/dev/null\n"


@pytest.mark.requirement("S4.R1.4")
async def test_both_streams_are_apart_and_in_the_order_they_were_written(host: HolderHost) -> None:
    talk = await host.run(
        "for i in 1 2 3 4; do echo o$i; sleep 0.1; echo e$i >&2; sleep 0.1; done", io_mode="pipe"
    )
    done = await talk.done()
    expected = [
        (stream, b"%c%d\n" % (letter, number))
        for number in range(1, 5)
        for stream, letter in (("stdout", b"o"), ("stderr", b"e"))
    ]
    assert _written(talk) == expected
    assert type(done) is InteractiveCmdDone


@pytest.mark.requirement("S4.R7.3")
async def test_a_timeout_keeps_what_came_and_leaves_nothing_of_the_tree(host: HolderHost) -> None:
    talk = await host.run_once(
        "echo begun; echo bad >&2; setsid sleep 1000 & sleep 1000", timeout_seconds=0.5
    )
    result = await talk.get(CommandResult)
    assert (result.timed_out, result.end_reason, result.survivors) == (True, "timed_out", [])
    assert (bytes(talk.output), bytes(talk.outputs["stderr"])) == (b"begun\n", b"bad\n")
    assert session_members(talk.session_id, roots=(), terminal_session=None) == []


@pytest.mark.parametrize("command", ["wc -c", "true", "exec 0<&-; echo closed"])
async def test_input_of_any_size_holds_nobody_up(host: HolderHost, command: str) -> None:
    talk = await host.run_once(command, input=b"x" * MAX_STDIN_BYTES)
    result = await talk.get(CommandResult)
    assert (result.exit_code, result.signal) == (0, None)
    assert talk.output == {"wc -c": b"%d\n" % MAX_STDIN_BYTES, "true": b""}.get(
        command, b"closed\n"
    )


async def test_more_input_than_a_start_may_carry_is_refused_before_anything_runs(
    host: HolderHost,
) -> None:
    talk = await host.run_once("cat", input=b"x" * (MAX_STDIN_BYTES + 1))
    failure = (await talk.get(Started)).failure
    assert failure is not None
    assert failure.code == "INPUT_TOO_LARGE"


async def test_input_arrives_byte_for_byte_whatever_the_length_of_its_lines(
    host: HolderHost,
) -> None:
    talk = await host.run("cat", io_mode="pipe")
    data = bytes(range(256)) * 200
    ack = await talk.type(data)
    assert (ack.accepted_bytes, ack.failure) == (len(data), None)
    await talk.until(lambda: talk.offset >= len(data), "the echo")
    assert (await talk.type(eof=True)).failure is None
    done = await talk.done()
    assert (done.exit_code, bytes(talk.output)) == (0, data)


async def test_first_input_comes_first_and_leaves_the_rest_to_be_written(host: HolderHost) -> None:
    talk = await host.run("cat", io_mode="pipe", stdin_data=b"one ")
    await talk.type(b"two")
    await talk.type(keys=["ctrl-d"])
    await talk.done()
    assert talk.output == b"one two"


@pytest.mark.parametrize("end", [{"eof": True}, {"keys": ["^D"]}])
async def test_the_end_of_the_input_waits_for_the_first_input(
    host: HolderHost, tmp_path: Path, end: dict[str, Any]
) -> None:
    go = tmp_path / "go"
    talk = await host.run(
        f"until [ -e {go} ]; do sleep 0.05; done; wc -c",
        io_mode="pipe",
        stdin_data=b"x" * MAX_STDIN_BYTES,
    )
    talk.type_later(**end)
    # The answer to the second command proves that the holder has seen the first.
    assert (await talk.resize(10, 10)).failure is not None
    go.touch()
    await talk.done()
    assert talk.output == b"%d\n" % MAX_STDIN_BYTES


async def test_a_closed_input_says_so_instead_of_keeping_callers_waiting(host: HolderHost) -> None:
    talk = await host.run("cat > /dev/null; read; sleep 100", io_mode="pipe")
    assert (await talk.type(b"x", eof=True)).failure is None
    failure = (await talk.type(b"more")).failure
    assert failure is not None
    assert failure.code == "STDIN_CLOSED"


async def test_input_for_a_program_that_closed_it_is_refused(host: HolderHost) -> None:
    talk = await host.run("exec 0<&-; echo ready; sleep 100", io_mode="pipe")
    await talk.shows(b"ready")
    failure = (await talk.type(b"x" * 100)).failure
    assert failure is not None
    assert failure.code == "STDIN_CLOSED"


async def test_ctrl_c_is_a_signal_to_the_whole_tree_and_its_byte_is_a_byte(
    host: HolderHost,
) -> None:
    talk = await host.run(
        "bash -c 'trap \"echo interrupted; exit 7\" INT; echo ready; cat'", io_mode="pipe"
    )
    await talk.shows(b"ready")
    await talk.type(b"\x03")
    await talk.shows(b"\x03")
    assert (await talk.type(keys=["Ctrl+C"])).failure is None
    done = await talk.done()
    assert (done.exit_code, done.end_reason) == (7, "exited")
    assert b"interrupted" in talk.output


async def test_without_a_terminal_ctrl_c_among_keys_and_secrets_are_refused(
    host: HolderHost,
) -> None:
    talk = await host.run("cat", io_mode="pipe")
    codes = [
        (await talk.type(**more)).failure
        for more in ({"keys": ["y", "^C"]}, {"keys": ["enter", "ctrl-c"]}, {"secret": b"hush"})
    ]
    assert [failure and failure.code for failure in codes] == [
        "NOT_A_TERMINAL",
        "NOT_A_TERMINAL",
        "NOT_ASKING_FOR_SECRET",
    ]
    await talk.type(b"still ", eof=True)
    await talk.done()
    assert talk.output == b"still "


async def test_pipes_have_no_size(host: HolderHost) -> None:
    talk = await host.run("cat", io_mode="pipe")
    failure = (await talk.resize(10, 10)).failure
    assert failure is not None
    assert failure.code == "NOT_A_TERMINAL"


async def test_a_signal_is_sent_once_if_that_is_all_that_was_asked_for(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'trap \"echo got it\" USR1; echo ready; while :; do sleep 0.05; done'",
        io_mode="pipe",
    )
    await talk.shows(b"ready")
    assert (await talk.terminate(signal="SIGUSR1", escalate=False)).failure is None
    await talk.shows(b"got it")
    refused = (await talk.terminate(signal="SIGNONE", escalate=False)).failure
    assert refused is not None
    assert refused.code == "UNKNOWN_SIGNAL"
    await talk.terminate(signal="SIGTERM", escalate=False)
    assert (await talk.done()).signal in ("SIGTERM", None)


async def test_of_two_signals_the_first_may_be_what_ends_the_program(host: HolderHost) -> None:
    last = "echo asked; read x; trap - TERM; kill -TERM $$"
    talk = await host.run(
        argv=["bash", "-c", f"trap '' USR2; trap '{last}' TERM; echo ready; while :; do :; done"],
        io_mode="pipe",
    )
    await talk.shows(b"ready")
    await talk.terminate(signal="SIGTERM", escalate=False)
    await talk.shows(b"asked")
    await talk.terminate(signal="SIGUSR2", escalate=False)
    await talk.type(b"\n")
    done = await talk.done()
    assert (done.end_reason, done.signal) == ("terminated", "SIGTERM")


async def test_a_child_that_keeps_a_pipe_open_delays_the_end_only_so_long(host: HolderHost) -> None:
    talk = await host.run_once("echo out; sleep 1000 &")
    result = await talk.get(CommandResult)
    assert (result.exit_code, result.notes, result.survivors) == (0, ["output_held"], [])
    assert talk.output == b"out\n"


@pytest.mark.requirement("S4.R1.3")
async def test_a_flood_on_both_streams_arrives_whole_and_takes_no_memory(host: HolderHost) -> None:
    command = (
        f"{sys.executable} -c 'import os; r = os.urandom(65536); [(os.write(1, r), "
        "os.write(2, r[:8192])) for _ in range(640)]'"
    )
    talk = await host.run(f"read x; {command}", io_mode="pipe", ring_bytes=4 * MEGABYTE)
    holder = host.holder_pid(talk.session_id)
    before = resident_bytes(holder)
    await talk.type(b"\n")
    await talk.until(lambda: talk.offset > 30 * MEGABYTE, "30 MB")
    assert resident_bytes(holder) < before + 16 * MEGABYTE
    done = await talk.done()
    assert (talk.offset, len(talk.outputs["stderr"])) == (40 * MEGABYTE, 5 * MEGABYTE)
    _assert_whole(talk, done)


async def test_a_server_that_commits_nothing_for_seconds_loses_nothing(host: HolderHost) -> None:
    flood = f"{sys.executable} -c 'import os; [os.write(1, os.urandom(65536)) for _ in range(96)]'"
    talk = await host.run(flood, io_mode="pipe", acks=False, ring_bytes=2 * MEGABYTE)
    await talk.until(lambda: talk.offset == SESSION_WINDOW_BYTES, "a full window")
    await talk.nothing_for(3.0)
    talk.acks = True
    talk.ack()
    done = await talk.done()
    assert talk.offset == 6 * MEGABYTE
    _assert_whole(talk, done)


async def test_another_daemon_goes_on_where_each_stream_was_committed(host: HolderHost) -> None:
    first = await host.run(
        "echo out; echo err >&2; cat; cat /dev/null >&2; echo more; echo worse >&2",
        io_mode="pipe",
        acks=False,
    )
    await first.until(lambda: first.offset == 4 and len(first.outputs["stderr"]) == 4, "both lines")
    second = await host.talk(first.session_id)
    positions = second.all_of(HolderHello)[0].summary.streams
    assert [(each.stream, each.next_offset) for each in positions] == [("stdout", 4), ("stderr", 4)]
    second.attach(2, stderr=4)
    await second.get(Started)
    await second.type(eof=True)
    done = await second.done()
    assert (bytes(second.output), bytes(second.outputs["stderr"])) == (b"t\nmore\n", b"worse\n")
    assert [final.next_offset for final in done.streams] == [9, 10]


async def test_the_environment_on_pipes_is_one_in_which_nobody_looks(host: HolderHost) -> None:
    talk = await host.run_once("env")
    await talk.get(CommandResult)
    names = dict(line.split(b"=", 1) for line in bytes(talk.output).splitlines())
    assert [names[name] for name in (b"TERM", b"NO_COLOR", b"PAGER", b"GIT_PAGER", b"LANG")] == [
        b"dumb",
        b"1",
        b"cat",
        b"cat",
        b"C.UTF-8",
    ]


async def test_a_program_on_pipes_inherits_three_descriptors_and_leads_a_session(
    host: HolderHost,
) -> None:
    script = "import os; print(sorted(os.listdir('/proc/self/fd')), os.getsid(0) == os.getpid())"
    talk = await host.run_once(argv=[sys.executable, "-c", script])
    await talk.get(CommandResult)
    # The fourth is that of the listing itself.
    assert talk.output == b"['0', '1', '2', '3'] True\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("no-such-program-here", "PROGRAM_NOT_FOUND"),
        ("/etc/passwd", "PROGRAM_NOT_EXECUTABLE"),
        ("", "START_FAILED"),
    ],
)
async def test_a_program_that_cannot_be_run_on_pipes_is_a_typed_failure(
    host: HolderHost, command: str, code: str
) -> None:
    talk = await host.run_once(command)
    started = await talk.get(Started)
    assert started.failure is not None
    assert (started.failure.code, started.io_mode) == (code, "pipe")


@pytest.mark.skipif(os.geteuid() != 0, reason="takes the terminals away in a mount namespace")
@pytest.mark.parametrize("may_fall_back", [True, False])
async def test_where_no_terminal_can_be_had_the_program_runs_on_pipes_if_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, may_fall_back: bool
) -> None:
    wrapper = tmp_path / "python-without-terminals"
    python = sys.executable
    wrapper.write_text(
        '#!/bin/sh\nexec unshare -m sh -c \'mount --bind /dev/null /dev/ptmx && exec "$0" "$@"\' '
        f'{python} "$@"\n'
    )
    wrapper.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(wrapper))
    async with holder_host(tmp_path) as host:
        talk = await host.run(
            "echo $TERM; echo bad >&2", io_mode="pty", pipe_fallback=may_fall_back
        )
        started = await talk.get(Started)
        if may_fall_back:
            await talk.done()
            assert started.io_mode == "pipe"
            assert "no terminal could be had" in (started.warning or "")
            assert (bytes(talk.output), bytes(talk.outputs["stderr"])) == (b"dumb\n", b"bad\n")
        else:
            assert started.failure is not None
            assert "terminal" in started.failure.message


async def test_a_terminal_is_given_its_first_input_and_the_end_of_it(host: HolderHost) -> None:
    talk = await host.run("cat", io_mode="pty", stdin="closed", stdin_data=b"typed\nhalf")
    done = await talk.done()
    assert done.exit_code == 0
    assert talk.output.count(b"typed\r\n") == 2
    assert talk.output.endswith(b"half")


async def test_a_one_shot_whose_holder_dies_is_lost_as_a_result(host: HolderHost) -> None:
    from controller_client.server_link.holders.dead_holder import DeadHolder
    from controller_client.system.termination import kill_leftovers

    talk = await host.run_once("sleep 1000", timeout_seconds=0)
    os.kill(host.holder_pid(talk.session_id), 9)
    directory = host.directory(talk.session_id)
    await await_until(lambda: not directory.is_holder_alive(), 55, "the holder to be dead")
    remains = DeadHolder.claim(directory)
    assert remains is not None
    remains.record_loss(kill_leftovers(talk.session_id), is_all=False)
    (end,) = remains.closing_messages({})
    assert isinstance(end, CommandResult)
    assert (end.end_reason, end.timed_out) == ("lost", False)
    remains.release()
