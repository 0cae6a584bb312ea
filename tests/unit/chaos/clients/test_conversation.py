"""What a conversation writes down for the judge is what it was told, and nothing else."""

import asyncio
import base64
import random
from pathlib import Path

import pytest

from chaos.clients.conversation import Conversation, Place
from chaos.clients.pipes import Background, OneShot
from chaos.history import History, events
from chaos.wire import Json, Reply
from tests.unit.chaos.clients.answers import NOBODY, Answers

_FAILED = Reply("refused", {"code": "CONTROLLER_ACTION_FAILED", "retryable": False})
_PAGE = Reply(
    "ok",
    {
        "output_base64": base64.b64encode(b"abc").decode(),
        "gaps": [],
        "next_offset": 3,
        "total_bytes": 3,
    },
)
_EMPTY = Reply("ok", {"output_base64": "", "gaps": [], "next_offset": 0, "total_bytes": 0})
_RECEIPT = Reply("ok", {"lifecycle": "EXITED"})


class Ended(Conversation):
    """A conversation about a session that has ended already."""

    async def converse(self) -> None:
        """Keep what the session printed."""
        await self.finish("s", "stdout")


class Repeating(random.Random):
    """Dice whose conversations always ask for an answer again."""

    def random(self) -> float:
        """The smallest number there is."""
        return 0.0


def _place(history: History, tmp_path: Path, *answers: Reply) -> Place:
    places = (tmp_path, tmp_path, tmp_path)
    return Place(Answers(*answers), history, *places, asyncio.Event(), NOBODY)


def _kinds(tmp_path: Path) -> list[object]:
    return [event["kind"] for event in events(tmp_path) if event["kind"] != "call"]


@pytest.mark.parametrize(("page", "kept"), [(_PAGE, b"abc"), (_EMPTY, b"")])
async def test_output_is_kept_after_a_refusal(
    history: History, tmp_path: Path, page: Reply, kept: bytes
) -> None:
    await Ended(
        _place(history, tmp_path, _FAILED, _RECEIPT, _FAILED, page), "n", random.Random(1)
    ).hold()
    assert (tmp_path / "n.out").read_bytes() == kept
    assert _kinds(tmp_path) == ["told_end", "stored"]


@pytest.mark.parametrize("answers", [(_FAILED,), (_RECEIPT, _FAILED)])
async def test_a_read_that_is_refused_is_no_empty_stream(
    history: History, tmp_path: Path, answers: tuple[Reply, ...]
) -> None:
    await Ended(_place(history, tmp_path, *answers), "n", random.Random(1)).hold()
    assert _kinds(tmp_path) == ["told_end", "unread", "left"]


async def test_a_session_whose_reads_are_refused_has_not_ended(
    history: History, tmp_path: Path
) -> None:
    started: Json = {"sessionId": "s"}
    place = _place(history, tmp_path, Reply("ok", started), Reply("ok", {"success": True}), _FAILED)
    await Background(place, "n", random.Random(1)).hold()
    assert _kinds(tmp_path) == ["unread", "left"]


async def test_a_one_shot_whose_host_is_away_has_not_ended(
    history: History, tmp_path: Path
) -> None:
    answers = [
        Reply("ok", {"session_id": "s", "success": False}),
        Reply("ok", {"lifecycle": "SENT", "ended_at": None}),
        Reply("ok", {"lifecycle": "EXITED", "ended_at": "2026-01-01T00:00:00Z"}),
        Reply("ok", {"lifecycle": "EXITED"}),
        _PAGE,
    ]
    await OneShot(_place(history, tmp_path, *answers), "n", random.Random(1)).hold()
    kinds = [event["kind"] for event in events(tmp_path)]
    assert kinds == ["call", "call", "call", "told_end", "call", "call", "stored", "call", "stored"]


async def test_a_one_shot_is_kept_from_the_session_that_its_repeat_began(
    history: History, tmp_path: Path
) -> None:
    answers = [
        Reply("ok", {"session_id": "s", "success": False}),
        Reply("ok", {"lifecycle": "EXPIRED", "ended_at": "2026-01-01T00:00:00Z"}),
        Reply("ok", {"session_id": "t", "success": True}),
        Reply("ok", {"lifecycle": "EXITED", "ended_at": "2026-01-01T00:00:00Z"}),
        Reply("ok", {"lifecycle": "EXITED"}),
        _PAGE,
    ]
    await OneShot(_place(history, tmp_path, *answers), "n", Repeating(1)).hold()
    asked = [event["arguments"] for event in events(tmp_path) if event["kind"] == "call"]
    sessions = [each["session_id"] for each in asked if "session_id" in each]
    assert sessions == ["s", "t", "t", "t", "t"]
