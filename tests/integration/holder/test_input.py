"""Typing into real programs: each input once, in order, wholly or not at all, and never past what
the terminal can take.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controller_client.protocol.messages import InputAck, InteractiveCmdDone, SendInput
from tests.support.hosts.holders import Conversation, HolderHost, holder_host
from tests.support.processes import descendants_of


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[HolderHost]:
    async with holder_host(tmp_path) as host:
        yield host


def _code(ack: InputAck) -> str | None:
    return ack.failure.code if ack.failure else None


async def test_an_input_that_comes_twice_is_typed_once_and_acknowledged_twice(
    host: HolderHost,
) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    for seq in (2, 3):
        talk.send(SendInput(seq=seq, session_id=talk.session_id, input_seq=1, data=b"once\n"))
    await talk.until(lambda: len(talk.all_of(InputAck)) == 2, "two acknowledgements")
    assert [
        (ack.command_seq, ack.input_seq, ack.accepted_bytes) for ack in talk.all_of(InputAck)
    ] == [(2, 1, 5), (3, 1, 5)]
    await talk.until(lambda: talk.output.count(b"once") == 2, "echo and copy")
    await talk.prompt()
    assert talk.output == b"once\r\nonce\r\n"


async def test_a_new_daemon_hears_every_input_acknowledgement_before_the_end(
    host: HolderHost,
) -> None:
    talk = await host.run("bash -c 'read a; read b'")
    await talk.prompt()
    await talk.type(b"one\n")
    await talk.type(b"two\n")
    await talk.done()
    await talk.close()
    again = await host.talk(talk.session_id)
    again.attach(0)
    await again.done()
    told = [
        message for message in again.received if isinstance(message, InputAck | InteractiveCmdDone)
    ]
    assert [type(message) for message in told] == [InputAck, InputAck, InteractiveCmdDone]
    assert again.all_of(InputAck) == talk.all_of(InputAck)


async def test_an_input_that_skips_a_number_is_refused_and_changes_nothing(
    host: HolderHost,
) -> None:
    talk = await host.run("cat")
    talk.send(SendInput(seq=2, session_id=talk.session_id, input_seq=5, data=b"early\n"))
    assert _code(await talk.get(InputAck)) == "INPUT_OUT_OF_ORDER"
    await talk.type(b"first\n")
    await talk.shows(b"first\r\nfirst")
    assert b"early" not in talk.output


async def test_a_line_the_terminal_would_cut_is_refused_whole(host: HolderHost) -> None:
    talk = await host.run("bash -c 'read -r line; echo ${#line}'")
    await talk.prompt()
    ack = await talk.type(b"x" * 4096 + b"\n")
    assert (_code(ack), ack.accepted_bytes) == ("INPUT_LINE_TOO_LONG", 0)
    assert _code(await talk.type(b"y" * 4000)) is None
    # What was typed ahead counts.
    assert _code(await talk.type(b"y" * 96)) == "INPUT_LINE_TOO_LONG"
    assert _code(await talk.type(b"y" * 95 + b"\n")) is None
    await talk.done()
    assert talk.output.endswith(b"4095\r\n")


async def test_many_lines_longer_than_the_terminals_buffer_all_arrive(host: HolderHost) -> None:
    talk = await host.run("bash -c 'stty -echo; echo ready; sha256sum'")
    await talk.shows(b"ready")
    await talk.prompt()
    lines = b"".join(b"%05d %s\n" % (number, b"z" * 90) for number in range(600))
    ack = await talk.type(lines, eof=True)
    assert (_code(ack), ack.accepted_bytes) == (None, len(lines) + 1)
    await talk.done()
    import hashlib

    assert hashlib.sha256(lines).hexdigest().encode() in talk.output


async def test_end_of_file_ends_the_input_also_after_an_unfinished_line(host: HolderHost) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    await talk.type(b"tail without newline", eof=True)
    assert (await talk.done()).exit_code == 0
    assert talk.output == b"tail without newlinetail without newline"


async def test_end_of_file_in_a_repl_that_edits_lines_itself(host: HolderHost) -> None:
    talk = await host.run("bash --norc -i")
    await talk.prompt()
    await talk.type(eof=True)
    assert (await talk.done()).exit_code == 0


async def test_keys_follow_the_cursor_mode_of_the_program(host: HolderHost) -> None:
    reader = "stty raw -echo; echo ready; head -c 3 | od -An -c"
    talk = await host.run(f"bash -c '{reader}; printf \"\\033[?1h\"; {reader}'")
    for expected in (b"[   A", b"O   A"):
        await talk.shows(b"ready")
        await talk.prompt()
        talk.output.clear()
        await talk.type(keys=["up"])
        await talk.shows(expected)


async def test_an_unknown_key_is_refused_by_name_and_nothing_is_typed(host: HolderHost) -> None:
    talk = await host.run("cat")
    await talk.prompt()
    ack = await talk.type(b"text\n", keys=["hyper-x"])
    assert _code(ack) == "UNKNOWN_KEY"
    assert talk.output == b""


async def test_a_secret_is_typed_only_while_the_terminal_hides_it(host: HolderHost) -> None:
    talk = await host.run(
        """bash -c 'read -p "user: " u; read -s -p "secret: " s; echo; echo ${#s}'"""
    )
    await talk.prompt()
    assert _code(await talk.type(secret=b"s3cret\n")) == "NOT_ASKING_FOR_SECRET"
    await talk.type(b"me\n")
    await talk.prompt()
    assert _code(await talk.type(secret=b"s3cret", keys=["enter"])) is None
    await talk.done()
    assert talk.output.endswith(b"6\r\n")
    assert b"s3cret" not in talk.output


async def test_ctrl_c_interrupts(host: HolderHost) -> None:
    talk = await host.run("sleep 60")
    await talk.type(keys=["ctrl-c"])
    done = await talk.done()
    assert (done.end_reason, done.signal, done.exit_code) == ("exited", "SIGINT", None)


async def test_ctrl_z_stops_a_job_and_fg_goes_on_with_it(host: HolderHost) -> None:
    talk = await host.run("bash --norc -i")
    await talk.prompt()
    await talk.type(b"cat\n")
    report = await talk.prompt()
    assert report.kind == "line"
    await talk.type(keys=["ctrl-z"])
    await talk.shows(b"Stopped")
    assert (await talk.prompt()).kind == "shell"
    await talk.type(b"fg\n")
    await talk.until(lambda: talk.output.count(b"cat") >= 3, "the job to go on")
    await talk.prompt()
    await talk.type(b"alive\n")
    await talk.shows(b"alive\r\nalive")


async def _block(talk: Conversation) -> int:
    """Type more than the kernel takes into a program that reads nothing; the number of the input
    that waits.
    """
    talk.type_later(b"line\n" * 13000)
    return talk.type_later(b"line\n" * 13000)


async def test_a_program_that_never_reads_blocks_the_input_not_the_session(
    host: HolderHost,
) -> None:
    talk = await host.run(
        "bash -c 'trap \"\" INT; stty -echo; echo ready; while sleep 0.05; do echo tick; done'"
    )
    await talk.shows(b"ready")
    blocked = await _block(talk)
    ack = await talk.get(InputAck, lambda ack: ack.input_seq == blocked)
    assert _code(ack) == "INPUT_BLOCKED"
    assert ack.accepted_bytes < 65000
    assert talk.output.count(b"tick") > 10
    # Nothing of the withdrawn input hinders the next one from being judged by itself.
    await talk.terminate(signal="SIGKILL")
    assert (await talk.done()).end_reason == "terminated"


async def test_ctrl_c_gets_past_input_that_nobody_reads(host: HolderHost) -> None:
    talk = await host.run("bash -c 'stty -echo; echo ready; exec sleep 60'")
    await talk.shows(b"ready")
    blocked = await _block(talk)
    ack = await talk.type(keys=["ctrl-c"])
    assert _code(ack) is None
    assert _code(await talk.get(InputAck, lambda ack: ack.input_seq == blocked)) == "INPUT_BLOCKED"
    assert (await talk.done()).signal == "SIGINT"


async def test_ctrl_c_gets_past_input_that_the_kernel_took_and_nobody_reads(
    host: HolderHost,
) -> None:
    talk = await host.run("bash -c 'stty -echo; echo ready; exec sleep 60'")
    await talk.shows(b"ready")
    assert _code(await talk.type(b"line\n" * 2000)) is None
    await talk.type(keys=["ctrl-c"])
    assert (await talk.done()).signal == "SIGINT"


async def test_input_after_the_end_is_refused(host: HolderHost) -> None:
    talk = await host.run("true")
    await talk.done()
    assert _code(await talk.type(b"late\n")) == "SESSION_ENDED"


async def test_a_resize_reaches_the_program(host: HolderHost) -> None:
    talk = await host.run(
        "bash -c 'trap \"stty size; exit\" WINCH; stty size; while :; do sleep 0.05; done'",
        rows=30,
        cols=90,
    )
    await talk.shows(b"30 90")
    for rows, cols in ((0, 132), (50, 0), (-1, 132), (50, 65536), (1 << 40, 1)):
        refused = await talk.resize(rows, cols)
        assert refused.failure is not None
        assert refused.failure.code == "BAD_SIZE"
    assert (await talk.resize(50, 132)).failure is None
    await talk.shows(b"50 132")
    await talk.done()
    ended = await talk.resize(10, 10)
    assert ended.failure is not None
    assert ended.failure.code == "SESSION_ENDED"


async def test_terminal_queries_are_answered_because_programs_block_on_them(
    host: HolderHost,
) -> None:
    talk = await host.run(
        "bash -c 'stty raw -echo; printf \"\\033[6n\"; head -c 6 | od -An -c; stty sane'"
    )
    await talk.done()
    assert b"R" in talk.output


async def test_no_process_of_the_machine_ever_shows_a_secret(host: HolderHost) -> None:
    talk = await host.run("bash -c 'read -s -p Password: p; echo; sleep 60'")
    await talk.prompt()
    await talk.type(secret=b"visible-nowhere-4711\n")
    directory = host.directory(talk.session_id).path
    assert not [
        path
        for path in sorted(directory.iterdir())
        if path.is_file() and b"visible-nowhere" in path.read_bytes()
    ]
    assert descendants_of(host.holder_pid(talk.session_id))
