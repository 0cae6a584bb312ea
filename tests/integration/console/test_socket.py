"""The socket for people: rights, by hand-made messages, and output by its offset."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.contrib.sessions.models import Session
from django.utils import timezone
from websockets.exceptions import InvalidStatus

from controller_client.protocol.messages import Stream
from projects.errors.shown_tools import tools_named
from projects.models import (
    AttentionEvent,
    AuditEvent,
    CommandSession,
    ControllerCommand,
    OutputGap,
    Project,
)
from projects.output import log as output_log
from projects.output.log import NewChunk
from projects.storage.access import in_database
from tests.support.people.console import ConsoleSocket, console_socket, sign_in
from tests.support.rows import make_controller, make_session
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)
KEYBOARD = "6b8f4f0e-0d4c-4b5e-9d59-3a8f0a2d7c11"


def _session(name: str, **fields: Any) -> CommandSession:
    later = timezone.now() + timedelta(hours=1)
    controller = make_controller(name, lease_expires_at=later)
    return make_session(controller, command=f"command-of-{name}", **fields)


def _print(session: CommandSession, data: bytes, stream: Stream = "stdout") -> None:
    """Store output as its host would."""
    row = CommandSession.objects.get(id=session.id)
    end = f"{stream}_next_offset"
    at, seq = getattr(row, end), row.last_chunk_seq
    size = 32 * 1024
    parts = [data[start : start + size] for start in range(0, len(data), size)]
    for number, part in enumerate(parts):
        chunk = NewChunk(session.id, stream, at + number * size, seq + number + 1, part)
        output_log.append([chunk])
    setattr(row, end, at + len(data))
    row.last_chunk_seq = seq + len(parts)
    row.save(update_fields=[end, "last_chunk_seq"])


async def _person(*sessions: CommandSession, **options: Any) -> str:
    projects = [await in_database(Project.objects.get, id=each.project_id) for each in sessions]
    return await in_database(sign_in, "ann", *projects, **options)


async def _open(socket: ConsoleSocket, session: CommandSession, **fields: Any) -> None:
    await socket.send("watch_session", session_id=str(session.id), **fields)


def _end_of(output: dict[str, Any]) -> int:
    return int(output["offset"]) + len(output["data"])


async def _inputs() -> list[int]:
    rows = ControllerCommand.objects.filter(type="SEND_INPUT").order_by("seq")
    return await in_database(lambda: list(rows.values_list("input_seq", flat=True)))


async def test_nothing_of_another_project_is_seen_or_typed(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    theirs = await in_database(_session, "theirs", terminal_prompt="theirs? ")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await socket.send("watch_board")
        board = await socket.receive("board")
        assert [row["command"] for row in board["rows"]] == ["command-of-ours"]
        assert board["counts"]["works"] == 1
        await _open(socket, theirs, offset=0)
        assert (await socket.receive("refused"))["code"] == "SESSION_NOT_FOUND"
        for message in ({"type": "take"}, {"type": "release"}, {"type": "take", "has": True}):
            await socket.send(message.pop("type"), **message)
            assert (await socket.receive("refused"))["code"] == "FORBIDDEN"
        await socket.send("input", keyboard=KEYBOARD, seq=1, text="x", session_id=str(theirs.id))
        assert (await socket.receive("refused"))["about"] == "input"
        await in_database(_print, theirs, b"secret of theirs")
        await in_database(_print, ours, b"news of ours")
        await socket.receive("board")
        assert "theirs" not in str(socket.heard)
    looks = await in_database(AuditEvent.objects.filter(action="transcript.view").count)
    assert (looks, await _inputs()) == (0, [])


async def test_what_wants_a_person_beside_sessions_is_counted_too(consumer_port: int) -> None:
    ours, theirs = [await in_database(_session, name) for name in ("ours", "theirs")]
    for at, session in enumerate((ours, ours, theirs)):
        # The first is of an active session, whose row on the board says so.
        await in_database(
            AttentionEvent.objects.create,
            cause=f"approval {at}",
            kind="approval_wanted",
            project_id=session.project_id,
            session=session if at == 0 else None,
        )
    async with console_socket(consumer_port, await _person(ours)) as socket:
        await socket.send("watch_board", counts_only=True)
        counts = (await socket.receive("board"))["counts"]
        assert (counts["person"], counts["elsewhere"]) == (1, 1)
        await in_database(AttentionEvent.objects.update, resolved_at=timezone.now())
        while counts["elsewhere"]:
            counts = (await socket.receive("board"))["counts"]


async def test_without_the_rights_there_are_no_screens_and_no_keys(consumer_port: int) -> None:
    ours = await in_database(_session, "ours", terminal_state="awaiting_input", terminal_prompt="?")
    await in_database(_print, ours, b"a line of its screen")
    key = await _person(ours, rights=("view_commandsession",))
    async with console_socket(consumer_port, key) as socket:
        await socket.send("watch_board")
        (row,) = (await socket.receive("board"))["rows"]
        assert (row["prompt"], row["last_line"]) == ("", "")
        await _open(socket, ours)
        assert (await socket.receive("refused"))["code"] == "FORBIDDEN"
    project = await in_database(lambda: ours.project)
    rights = ("view_commandsession", "view_transcript")
    reader = await in_database(sign_in, "bob", project, rights=rights)
    async with console_socket(consumer_port, reader) as socket:
        await _open(socket, ours)
        assert await socket.output(20) == b"a line of its screen"
        await socket.send("take")
        assert (await socket.receive("refused"))["code"] == "FORBIDDEN"


@pytest.mark.parametrize(
    ("end", "code"),
    [
        ("right", "FORBIDDEN"),
        ("project", "FORBIDDEN"),
        ("login", "LOGIN_ENDED"),
        ("user", "LOGIN_ENDED"),
    ],
)
async def test_what_ends_a_right_closes_the_view(consumer_port: int, end: str, code: str) -> None:
    ours = await in_database(_session, "ours")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours)
        await socket.receive("begin")
        await in_database(_END[end])
        assert (await socket.closed())[1] == code


@pytest.mark.parametrize("end", ["typing", "right", "project"])
async def test_what_ends_the_right_to_type_gives_the_keyboard_back(
    consumer_port: int, end: str
) -> None:
    ours = await in_database(_session, "ours")
    async with console_socket(consumer_port, await _person(ours)) as socket:
        await _open(socket, ours)
        await socket.send("take")
        await socket.receive("taken")
        await in_database(_END[end])
        if end == "typing":
            while not (now := await socket.receive("session"))["who"].startswith("Handed back"):
                pass
            assert now["operator"] == ""
        else:
            await socket.closed()

    async def handed_back() -> CommandSession | None:
        row = await in_database(CommandSession.objects.get, id=ours.id)
        return None if row.taken_over_by else row

    # The view may be closed before the keyboard is given back.
    row = await await_until(handed_back, 60, "the keyboard to be given back")
    assert "may not type here any more" in row.handback_note


def _remove_right(name: str = "view_transcript") -> None:
    User.objects.get(username="ann").user_permissions.remove(Permission.objects.get(codename=name))


def _leave_project() -> None:
    Project.objects.get(name="project-of-ours").members.clear()


_END: dict[str, Callable[[], Any]] = {
    "typing": lambda: _remove_right("take_over_session"),
    "right": _remove_right,
    "project": _leave_project,
    "login": lambda: Session.objects.all().delete(),
    "user": lambda: User.objects.update(is_active=False),
}


async def test_only_pages_of_the_server_with_a_login_are_served(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    key = await _person(ours)
    for origin in ("http://evil.example", "null", f"http://localhost:{consumer_port}"):
        with pytest.raises(InvalidStatus):
            async with console_socket(consumer_port, key, origin=origin):
                pass
    async with console_socket(consumer_port, "no-such-login") as socket:
        assert (await socket.closed())[1] == "LOGIN_ENDED"
    async with console_socket(consumer_port, key) as socket:
        await socket.send("no_such_message")
        assert (await socket.closed())[1] == "BAD_MESSAGE"


async def test_output_goes_on_at_its_offset_and_a_look_is_on_record(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    await in_database(_print, ours, b"0123456789")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours, offset=4)
        assert await socket.output(6) == b"456789"
        await in_database(_print, ours, b"abc")
        assert await socket.output(3) == b"abc"
        await in_database(_print, ours, b"lost")
        await in_database(_lose, ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours, offset=13)
        gap = await socket.receive("gap", "output")
        assert (gap["type"], gap["offset"], gap["to_offset"]) == ("gap", 13, 17)
    rows = AuditEvent.objects.filter(action="transcript.view", actor="admin:ann")
    assert await in_database(rows.count) == 2


async def test_a_browser_goes_on_far_behind_the_beginning(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    await in_database(_print, ours, b"x" * 400_000)
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours, offset=300_000)
        assert (await socket.receive("output"))["offset"] == 300_000


async def test_both_streams_of_a_program_without_a_terminal_are_shown(consumer_port: int) -> None:
    ours = await in_database(_session, "ours", io_mode="pipe")
    await in_database(_print, ours, b"warning", "stderr")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours, offset=0, stderr=4)
        error = await socket.receive("output")
        assert (error["stream"], error["offset"], error["data"]) == ("stderr", 4, b"ing")
        await in_database(_print, ours, b"result")
        result = await socket.receive("output")
        assert (result["stream"], result["offset"], result["data"]) == ("stdout", 0, b"result")
        await in_database(_print, ours, b", too", "stderr")
        error = await socket.receive("output")
        assert (error["stream"], error["offset"], error["data"]) == ("stderr", 7, b", too")


def _lose(session: CommandSession) -> None:
    session.chunks.filter(offset=13).delete()
    OutputGap.objects.create(
        session=session, stream="stdout", from_offset=13, to_offset=17, reason="overflow"
    )


async def test_a_slow_browser_skips_and_is_told_how_much(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours)
        assert (await socket.receive("begin"))["offset"] == 0
        window = 256 * 1024
        await in_database(_print, ours, b"x" * 511 + b"\n" + b"y" * window)
        shown = 0
        while shown < window:
            # Nothing is acknowledged, so no more than the window comes.
            shown = _end_of(await socket.receive("output"))
        for _ in range(7):
            await in_database(_print, ours, b"x" * 511 + b"\n" + b"y" * window)
        await socket.send("watch_board")
        await socket.receive("board")
        outputs = [message for message in socket.heard if message["type"] == "output"]
        assert _end_of(outputs[-1]) == shown
        await socket.send("seen", offset=shown)
        while (message := await socket.receive("begin", "output"))["type"] == "output":
            # The server has not seen all of it yet.
            shown = _end_of(message)
            await socket.send("seen", offset=shown)
        assert message["skipped"] > 0
        assert shown + message["skipped"] == message["offset"]
        await socket.output(1000)


async def test_an_input_that_comes_again_over_another_socket_is_typed_once(
    consumer_port: int,
) -> None:
    ours = await in_database(_session, "ours")
    key = await _person(ours)
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours)
        await socket.send("input", keyboard=KEYBOARD, seq=1, text="a")
        assert (await socket.receive("refused"))["code"] == "KEYBOARD_NOT_HELD"
        await socket.send("take")
        await socket.receive("taken")
        for _ in range(2):
            await socket.send("input", keyboard=KEYBOARD, seq=1, text="a")
            assert (await socket.receive("typed"))["seq"] == 1
    async with console_socket(consumer_port, key) as socket:
        await _open(socket, ours, offset=0)
        await socket.send("take", has=True)
        await socket.receive("taken")
        for seq in (1, 2):
            await socket.send("input", keyboard=KEYBOARD, seq=seq, text="ab"[seq - 1])
            await socket.receive("typed")
        assert await _inputs() == [1, 2]
        await socket.send("release", note="done")
        while (await socket.receive("session"))["operator"]:
            pass
        await socket.send("take", has=True)
        assert (await socket.receive("refused"))["code"] == "KEYBOARD_NOT_HELD"
    row = await in_database(CommandSession.objects.get, id=ours.id)
    assert "done" in row.handback_note


async def test_everybody_sees_who_asks_for_the_keyboard(consumer_port: int) -> None:
    ours = await in_database(_session, "ours")
    ann = await _person(ours)
    bob = await in_database(sign_in, "bob", await in_database(lambda: ours.project))
    async with console_socket(consumer_port, ann) as one, console_socket(consumer_port, bob) as two:
        for socket in (one, two):
            await _open(socket, ours)
        await one.send("take")
        await one.receive("taken")
        await two.send("take")
        refused = await two.receive("refused")
        assert refused["code"] == "SESSION_TAKEN_OVER"
        assert not tools_named(refused["hint"])
        await two.send("ask")
        for socket in (one, two):
            while not (now := await socket.receive("session"))["asks"]:
                pass
            assert (now["operator"], now["asks"]) == (
                "admin:ann",
                "admin:bob asks for the keyboard.",
            )
