"""Reads of a background session: each reader gets all of the output once."""

import asyncio
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.messages import Stream
from projects.accounts.authentication import Caller
from projects.sessions.answers.unread import BackgroundOutput
from projects.sessions.background import background_read, background_start
from tests.support.hosts.acting_host import ActingHost

pytestmark = pytest.mark.django_db(transaction=True)


def _texts(output: BackgroundOutput | None) -> tuple[str, str]:
    assert output is not None
    return output.stdout, output.stderr


def _caller(project_id: UUID, name: str) -> Caller:
    return Caller(project_id, f"token:{name}", frozenset({"admin:*"}), uuid4())


@pytest.mark.requirement("S0.R2.1", "S0.R2.3")
async def test_each_caller_reads_everything_once_whoever_else_reads(
    project_id: UUID, host: ActingHost
) -> None:
    one, two = _caller(project_id, "agent"), _caller(project_id, "agent")
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    await host.say(
        host.output(session, b"out1\n"), host.output(session, b"err1\n", stream="stderr")
    )
    assert _texts(await background_read(project_id, started.session_id, caller=one)) == (
        "out1\n",
        "err1\n",
    )
    await host.say(host.output(session, b"out2\n"))
    assert _texts(await background_read(project_id, started.session_id, caller=one)) == (
        "out2\n",
        "",
    )
    assert _texts(await background_read(project_id, started.session_id, caller=two)) == (
        "out1\nout2\n",
        "err1\n",
    )
    assert _texts(await background_read(project_id, started.session_id, caller=one)) == ("", "")


@pytest.mark.requirement("S0.R2.2")
async def test_a_waiting_read_returns_the_moment_something_comes(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "later")
    session = str(started.session_id)
    call = asyncio.create_task(background_read(project_id, started.session_id, wait_seconds=30))
    await asyncio.sleep(0)
    await host.say(host.output(session, b"done\n", stream="stderr"))
    async with asyncio.timeout(10):
        assert _texts(await call) == ("", "done\n")


async def test_a_waiting_read_returns_at_the_end_too(project_id: UUID, host: ActingHost) -> None:
    started = await background_start(project_id, "later")
    call = asyncio.create_task(background_read(project_id, started.session_id, wait_seconds=30))
    await asyncio.sleep(0)
    await host.say(host.ended(str(started.session_id), exit_code=0))
    async with asyncio.timeout(10):
        assert (await call).is_active is False


async def test_a_retry_repeats_a_lost_reply_until_the_next_request_confirms_it(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "work")
    session, first, second = str(started.session_id), uuid4(), uuid4()
    await host.say(host.output(session, b"one\n"))
    assert _texts(await background_read(project_id, started.session_id, request_id=first)) == (
        "one\n",
        "",
    )
    await host.say(host.output(session, b"two\n"))
    assert _texts(await background_read(project_id, started.session_id, request_id=first)) == (
        "one\n",
        "",
    )
    assert _texts(await background_read(project_id, started.session_id, request_id=second)) == (
        "two\n",
        "",
    )
    assert _texts(await background_read(project_id, started.session_id, request_id=second)) == (
        "two\n",
        "",
    )
    assert _texts(await background_read(project_id, started.session_id, request_id=uuid4())) == (
        "",
        "",
    )


async def test_two_reads_of_one_caller_at_once_share_nothing_and_lose_nothing(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    calls = [
        asyncio.create_task(background_read(project_id, started.session_id, wait_seconds=10))
        for _ in range(2)
    ]
    await asyncio.sleep(0)
    await host.say(host.output(session, b"one\n"))
    await host.say(host.output(session, b"two\n"), host.ended(session, exit_code=0))
    texts = [_texts(await call)[0] for call in calls]
    rest = _texts(await background_read(project_id, started.session_id))[0]
    assert sorted("".join([*texts, rest]).splitlines()) == ["one", "two"]


async def test_a_character_is_not_split_between_two_reads(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    await host.say(host.output(session, b"a\xe2\x82"))
    assert _texts(await background_read(project_id, started.session_id))[0] == "a"
    await host.say(host.output(session, b"\xac"))
    assert _texts(await background_read(project_id, started.session_id))[0] == "€"
    await host.say(host.output(session, b"\xe2"), host.ended(session, exit_code=0))
    assert _texts(await background_read(project_id, started.session_id))[0] == "\ufffd"


async def test_more_than_one_reply_carries_comes_with_the_next(
    project_id: UUID, host: ActingHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("projects.sessions.answers.unread.MAX_SLICE_BYTES", 4)
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    await host.say(host.output(session, b"abcdef"), host.ended(session, exit_code=0))
    first = await background_read(project_id, started.session_id)
    second = await background_read(project_id, started.session_id)
    assert [(part.stdout, part.has_more, part.is_active) for part in (first, second)] == [
        ("abcd", True, False),
        ("ef", False, False),
    ]


@pytest.mark.parametrize(
    ("tail", "rest"),
    [
        (b"\xe2\x82", b"\xac"),
        (b"\xf0\x9f\x98", b"\x80"),
        (b"\x1b", b"[0m"),
        (b"\x1b[38;5;1", b"m"),
        (b"\x1b]0;title", b"\x07"),
        (b"\x1b]0;title", b"\x1b\\"),
    ],
)
@pytest.mark.parametrize("streams", [("stdout",), ("stderr",), ("stdout", "stderr")])
@pytest.mark.parametrize("slice_bytes", [4, 1 << 20])
async def test_there_is_no_more_while_only_a_part_is_held_back(
    project_id: UUID,
    host: ActingHost,
    monkeypatch: pytest.MonkeyPatch,
    tail: bytes,
    rest: bytes,
    streams: tuple[Stream, ...],
    slice_bytes: int,
) -> None:
    monkeypatch.setattr("projects.sessions.answers.unread.MAX_SLICE_BYTES", slice_bytes)
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    for stream in streams:
        await host.say(host.output(session, b"four" + tail, stream=stream))
    request_id = uuid4()
    for _ in range(2):
        read = await background_read(project_id, started.session_id, request_id=request_id)
        assert (_texts(read), read.has_more) == (
            ("four" * ("stdout" in streams), "four" * ("stderr" in streams)),
            False,
        )
    monkeypatch.setattr("projects.sessions.answers.unread.MAX_SLICE_BYTES", 1 << 20)
    for stream in streams:
        await host.say(host.output(session, rest + b"!", stream=stream))
    read = await background_read(project_id, started.session_id)
    assert read.has_more is False
    assert all(text.endswith("!") for text in _texts(read) if text)
    assert any(_texts(read))


async def test_a_part_that_was_held_back_is_more_once_the_program_is_over(
    project_id: UUID, host: ActingHost
) -> None:
    started = await background_start(project_id, "work")
    session = str(started.session_id)
    await host.say(host.output(session, b"a\xe2"))
    assert (await background_read(project_id, started.session_id)).has_more is False
    await host.say(host.ended(session, exit_code=0))
    last = await background_read(project_id, started.session_id)
    assert (_texts(last), last.has_more) == (("\ufffd", ""), False)
