"""Reads of a monitor whose callers repeat them: what is read is told to somebody."""

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.protocol.messages import FileChunk, ReadFile
from projects.models import Monitor
from projects.monitors import read
from projects.monitors.read import FileEvent, MonitorUpdate, monitor_read
from projects.storage.access import in_database
from tests.support.rows import make_controller

pytestmark = pytest.mark.django_db(transaction=True)

_LINES = {0: b"one\n", 4: b"two\n", 8: b"three\n"}


def _monitor() -> Monitor:
    controller = make_controller()
    return Monitor.objects.create(
        project_id=controller.project_id,
        controller=controller,
        session_id=uuid4(),
        log_file="/a.log",
        file_identity="1:2",
    )


async def test_a_call_that_was_given_up_reads_past_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitor = await in_database(_monitor)
    given_up = uuid4()

    async def read_as(request_id: UUID) -> bytes:
        name = str(monitor.session_id)
        return (await monitor_read(monitor.project_id, name, request_id=request_id)).data

    async def line(_host: UUID, question: ReadFile) -> FileChunk:
        position = question.position
        return FileChunk(reply_to="1", identity="1:2", position=position, data=_LINES[position])

    async def late_line(host: UUID, question: ReadFile) -> FileChunk:
        """Answer after the caller has repeated the call, and made the next one."""
        monkeypatch.setattr(read, "read_file", line)
        assert await read_as(given_up) == b"one\n"
        assert await read_as(uuid4()) == b"two\n"
        return await line(host, question)

    monkeypatch.setattr(read, "read_file", late_line)
    assert await read_as(given_up) == b""
    assert await read_as(uuid4()) == b"three\n"


async def test_a_digest_reads_past_nothing_that_another_read_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monitor = await in_database(_monitor)
    name, asked = str(monitor.session_id), 0

    async def line(_host: UUID, question: ReadFile) -> FileChunk:
        position = question.position
        return FileChunk(
            reply_to="1", identity="1:2", position=position, data=_LINES[position], has_more=True
        )

    async def between(host: UUID, question: ReadFile) -> FileChunk:
        """Answer the digest; before its second question somebody else reads."""
        nonlocal asked
        asked += 1
        chunk = await line(host, question)
        if asked == 1:
            monkeypatch.setattr(read, "in_database", other_first)
        return chunk

    async def other_first(function: Any, *given: Any) -> Any:
        if function is read._look:
            monkeypatch.setattr(read, "in_database", in_database)
            monkeypatch.setattr(read, "read_file", line)
            assert (await monitor_read(monitor.project_id, name)).data == b"two\n"
            monkeypatch.setattr(read, "read_file", between)
        return await in_database(function, *given)

    monkeypatch.setattr(read, "read_file", between)
    digest = await monitor_read(monitor.project_id, name, is_digest=True)
    assert (digest.offset, digest.next_offset) == (0, 4)
    monkeypatch.setattr(read, "read_file", line)
    assert (await monitor_read(monitor.project_id, name)).data == b"three\n"


def _answers(*chunks: dict[str, Any]) -> Callable[[UUID, ReadFile], Awaitable[FileChunk]]:
    """A host that gives these answers one after the other, and then finds nothing new."""
    left = [FileChunk(reply_to="1", identity="1:2", **chunk) for chunk in chunks]

    async def answer(_host: UUID, question: ReadFile) -> FileChunk:
        if left:
            return left.pop(0)
        return FileChunk(reply_to="1", identity="1:2", position=question.position, data=b"")

    return answer


@pytest.mark.parametrize(
    "chunks",
    [
        [
            {"data": b"new\n", "reset": "rotated", "gap": "hole", "gap_bytes": 7},
            {"position": 4, "data": b"two\n"},
        ],
        [
            {"data": b"old\n"},
            {"data": b"", "reset": "rotated", "gap": "hole", "gap_bytes": 7},
        ],
        [
            {"data": b"new\n", "reset": "rotated", "gap": "hole", "gap_bytes": 3},
            {"position": 4, "data": b"two\n", "gap": "hole", "gap_bytes": 4},
        ],
    ],
    ids=["in the first part", "without a byte", "in two parts"],
)
async def test_a_repeated_digest_tells_all_that_the_first_one_told(
    monkeypatch: pytest.MonkeyPatch, chunks: list[dict[str, Any]]
) -> None:
    monitor = await in_database(_monitor)
    chunks = [{"position": 0, "has_more": True, **chunk} for chunk in chunks]
    monkeypatch.setattr(read, "read_file", _answers(*chunks))
    name, asked = str(monitor.session_id), uuid4()

    async def digested() -> MonitorUpdate:
        return await monitor_read(monitor.project_id, name, request_id=asked, is_digest=True)

    first, again = await digested(), await digested()
    told = ("reset", "gap", "lost_bytes", "late")
    for update in (first, again):
        assert [getattr(update.event, name) for name in told] == ["rotated", "hole", 7, False]
    assert again.is_repeat
    assert (again.offset, again.next_offset) == (first.offset, first.next_offset)
    assert again.digest == first.digest


@pytest.mark.parametrize(
    ("earlier", "later", "lost"),
    [
        ((None, None), (None, None), None),
        (("hole", 3), (None, None), 3),
        ((None, None), ("truncated", 4), 4),
        (("hole", 3), ("truncated", 4), 7),
        (("hole", None), ("truncated", 4), None),
        (("hole", 3), ("truncated", None), None),
    ],
)
def test_what_two_parts_of_a_reply_miss_is_added_up(
    earlier: tuple[str | None, int | None],
    later: tuple[str | None, int | None],
    lost: int | None,
) -> None:
    events = [
        FileEvent(file_position=0, has_more=False, gap=gap, lost_bytes=size)
        for gap, size in (earlier, later)
    ]
    whole = events[1].after(events[0])
    assert (whole.lost_bytes, whole.gap) == (lost, later[0] or earlier[0])
