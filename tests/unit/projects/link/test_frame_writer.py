"""The end of a session is acknowledged once its digests were compared, however late that is."""

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from controller_client.protocol.messages import DoneAck, Gap, InteractiveCmdDone, Message
from controller_client.protocol.resume import ReceiveWindow
from projects.errors.server import StorageUnavailable
from projects.link import frame_writer
from projects.link.file_asker import FileAsker
from projects.link.frame_writer import FrameWriter
from projects.link.inbound.batch import BatchResult
from projects.link.inbound.connection_memory import ConnectionMemory


async def test_digests_are_compared_again_after_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    session_id, compared = str(uuid4()), 0
    sent: asyncio.Queue[Message] = asyncio.Queue()

    async def away_at_first(*_: Any) -> list[str]:
        nonlocal compared
        compared += 1
        if compared == 1:
            raise StorageUnavailable
        return []

    monkeypatch.setattr(frame_writer, "at_length", away_at_first)
    monkeypatch.setattr(frame_writer, "STORAGE_RETRY_MAX_SECONDS", 0.0)
    writer = FrameWriter(
        uuid4(),
        window=ReceiveWindow(),
        memory=ConnectionMemory(),
        files=FileAsker(uuid4(), sent.put),
        send=sent.put,
    )
    task = asyncio.create_task(writer.finish())
    done = InteractiveCmdDone(session_id=session_id, end_reason="exited", exit_code=0)
    await writer._report(BatchResult(dones=[done]))
    acknowledged = await sent.get()
    assert isinstance(acknowledged, DoneAck)
    assert acknowledged.session_ids == [session_id]
    assert compared == 2
    task.cancel()


async def test_an_end_that_is_told_again_and_again_waits_once() -> None:
    sent: asyncio.Queue[Message] = asyncio.Queue()
    writer = FrameWriter(
        uuid4(),
        window=ReceiveWindow(),
        memory=ConnectionMemory(),
        files=FileAsker(uuid4(), sent.put),
        send=sent.put,
    )
    done = InteractiveCmdDone(session_id=str(uuid4()), end_reason="exited", exit_code=0)
    for _ in range(3):
        await writer._report(BatchResult(dones=[done, done]))
    assert writer._dones.qsize() == 1


def test_only_the_server_calls_a_gap_restored() -> None:
    gap = Gap(session_id="s", stream="stdout", from_offset=0, to_offset=1, reason="restored")
    (told,) = [ConnectionMemory().with_reason(gap)]
    assert isinstance(told, Gap)
    assert told.reason == "lost"
