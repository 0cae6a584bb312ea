"""An operator at a browser has the keyboard alone, types once, and hands it back in any case."""

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from projects import services
from projects.accounts.authentication import Caller
from projects.errors.sessions import KeyboardNotHeld, SessionNotFound, SessionTakenOver
from projects.models import AuditEvent, CommandSession, ControllerCommand, HeldKeyboard
from projects.sessions.transactions import control
from projects.sessions.transactions.keyboard import (
    GONE_SECONDS,
    abandoned_keyboards,
    keyboard_expire,
    keyboard_keep,
)
from projects.storage import clock
from projects.storage.access import in_database
from projects.upkeep import sweeper
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)
ANN, BOB = "admin:ann", "admin:bob"


@pytest.fixture
async def session() -> CommandSession:
    def make() -> CommandSession:
        later = timezone.now() + timedelta(minutes=5)
        return make_session(make_controller(lease_expires_at=later), lifetime_seconds=3600.0)

    return await in_database(make)


async def _take(session: CommandSession, operator: str, *, is_insisting: bool = False) -> None:
    await services.session_keyboard_take(
        session.project_id, session.id, operator=operator, is_insisting=is_insisting
    )


async def _type(session: CommandSession, operator: str, text: str, request_id: uuid.UUID) -> None:
    caller = Caller(session.project_id, operator, frozenset({"session:input", "shell:any"}))
    await services.session_keyboard_type(
        session.project_id, session.id, text, caller=caller, request_id=request_id
    )


async def _inputs() -> int:
    return await in_database(ControllerCommand.objects.filter(type="SEND_INPUT").count)


async def _operator(session: CommandSession) -> str:
    return (await in_database(CommandSession.objects.get, id=session.id)).taken_over_by


async def test_an_input_is_typed_once_and_only_by_who_has_the_keyboard(
    session: CommandSession,
) -> None:
    key = uuid.uuid4()
    with pytest.raises(KeyboardNotHeld):
        await _type(session, ANN, "a", key)
    assert await _inputs() == 0
    await _take(session, ANN)
    for _ in range(2):
        await _type(session, ANN, "a", key)
    assert await _inputs() == 1
    await services.session_keyboard_release(
        session.project_id, session.id, operator=ANN, note="done"
    )
    # What was typed before is known to have been typed; anything new is refused.
    await _type(session, ANN, "a", key)
    with pytest.raises(KeyboardNotHeld):
        await _type(session, ANN, "b", uuid.uuid4())
    assert await _inputs() == 1
    kept = await in_database(AuditEvent.objects.filter(action="session.input").count)
    assert kept == 1


async def test_another_operator_takes_the_keyboard_only_if_they_insist(
    session: CommandSession,
) -> None:
    await _take(session, ANN)
    with pytest.raises(SessionTakenOver):
        await _take(session, BOB)
    await _take(session, BOB, is_insisting=True)
    assert await _operator(session) == BOB
    keep = services.session_keyboard_keep
    assert not await keep(session.id, operator=ANN, has_typed=True)
    assert await keep(session.id, operator=BOB, has_typed=False)
    with pytest.raises(SessionTakenOver):
        await _type(session, ANN, "a", uuid.uuid4())


async def test_who_asks_at_a_session_that_is_gone_is_told(session: CommandSession) -> None:
    about = (session.project_id, session.id)
    await in_database(CommandSession.objects.all().delete)
    with pytest.raises(SessionNotFound):
        await services.session_keyboard_ask(*about, operator=BOB)


async def _asked_by() -> str:
    return str(await in_database(HeldKeyboard.objects.values_list("asked_by", flat=True).get))


async def test_who_asks_for_the_keyboard_is_noted_until_it_moves(session: CommandSession) -> None:
    with pytest.raises(KeyboardNotHeld):
        await services.session_keyboard_ask(session.project_id, session.id, operator=BOB)
    await _take(session, ANN)
    with pytest.raises(KeyboardNotHeld):
        await services.session_keyboard_ask(session.project_id, session.id, operator=ANN)
    await services.session_keyboard_ask(session.project_id, session.id, operator=BOB)
    assert await _asked_by() == BOB
    assert await _operator(session) == ANN
    await _take(session, BOB, is_insisting=True)
    assert await _asked_by() == ""


@pytest.mark.parametrize(
    ("column", "ago", "note"),
    [
        ("seen_at", timedelta(seconds=61), "the browser was gone"),
        ("typed_at", timedelta(minutes=16), "nothing was typed"),
    ],
)
async def test_an_abandoned_keyboard_goes_back_with_a_note(
    session: CommandSession, column: str, ago: timedelta, note: str
) -> None:
    await _take(session, ANN)
    await sweeper.sweep()
    assert await _operator(session) == ANN
    await in_database(HeldKeyboard.objects.update, **{column: timezone.now() - ago})
    await sweeper.sweep()
    row = await in_database(CommandSession.objects.get, id=session.id)
    assert row.taken_over_by == ""
    assert note in row.handback_note
    assert not await in_database(HeldKeyboard.objects.exists)


@pytest.mark.parametrize("column", ["seen_at", "typed_at"])
async def test_a_keyboard_stays_where_it_is_when_the_clock_jumps(
    session: CommandSession, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await _take(session, ANN)
    await in_database(
        HeldKeyboard.objects.update, **{column: timezone.now() - timedelta(minutes=16)}
    )
    monkeypatch.setattr(clock.STEADINESS, "_since", clock.time.monotonic())
    await sweeper.sweep()
    assert await _operator(session) == ANN


async def test_a_takeover_without_a_browser_does_not_expire(session: CommandSession) -> None:
    await services.session_take_over(session.project_id, session.id, operator=ANN)
    assert not await in_database(HeldKeyboard.objects.exists)
    await sweeper.sweep()
    assert await _operator(session) == ANN


async def test_the_keyboard_of_an_ended_session_is_forgotten(session: CommandSession) -> None:
    await _take(session, ANN)
    await in_database(CommandSession.objects.filter(id=session.id).update, state="EXITED")
    await in_database(HeldKeyboard.objects.update, seen_at=timezone.now() - timedelta(hours=1))
    await sweeper.sweep()
    assert not await in_database(HeldKeyboard.objects.exists)


async def test_of_two_who_take_the_keyboard_at_once_one_gets_it(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = control.lifetimes.hold

    def bob_was_earlier(*about: Any) -> Any:
        CommandSession.objects.filter(id=session.id).update(taken_over_by=BOB)
        return begin(*about)

    monkeypatch.setattr(control.lifetimes, "hold", bob_was_earlier)
    with pytest.raises(SessionTakenOver, match=BOB):
        await _take(session, ANN)
    assert await in_database(HeldKeyboard.objects.count) == 0


async def test_an_operator_who_came_back_keeps_the_keyboard(
    session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "can_tell", lambda seconds: True)
    await _take(session, ANN)
    long_ago = timezone.now() - timedelta(seconds=GONE_SECONDS + 1)
    await in_database(HeldKeyboard.objects.update, seen_at=long_ago)
    (left,) = await in_database(abandoned_keyboards)
    assert await in_database(keyboard_keep, session.id, ANN, has_typed=True)
    assert await in_database(keyboard_expire, left) is None
    assert await _operator(session) == ANN
    await in_database(HeldKeyboard.objects.update, seen_at=long_ago)
    (left,) = await in_database(abandoned_keyboards)
    await in_database(keyboard_expire, left)
    assert await _operator(session) == ""


async def test_an_operator_who_took_it_again_elsewhere_keeps_the_keyboard(
    session: CommandSession,
) -> None:
    await _take(session, ANN)
    long_ago = timezone.now() - timedelta(seconds=GONE_SECONDS + 1)
    await in_database(HeldKeyboard.objects.update, seen_at=long_ago)
    (left,) = await in_database(abandoned_keyboards)
    await services.session_take_over(session.project_id, session.id, operator=ANN)
    assert await in_database(keyboard_expire, left) is None
    assert await _operator(session) == ANN


async def test_only_who_has_the_keyboard_gives_the_terminal_a_size(
    session: CommandSession,
) -> None:
    await _take(session, ANN)
    for caller in ("token:agent", BOB, ANN):
        about = Caller(session.project_id, caller, frozenset({"session:input"}))
        resize = services.session_resize(
            session.project_id, session.id, rows=3, cols=70, caller=about, wait_seconds=0.0
        )
        if caller == ANN:
            await resize
        else:
            with pytest.raises(SessionTakenOver):
                await resize
    sizes = await in_database(lambda: CommandSession.objects.get(id=session.id))
    assert (sizes.rows, sizes.cols) == (3, 70)
    assert await in_database(ControllerCommand.objects.filter(type="RESIZE").count) == 1
