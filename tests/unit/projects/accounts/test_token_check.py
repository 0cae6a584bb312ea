"""A remembered token reads a request, and acts only after its row was read again."""

import asyncio
from typing import Any

import pytest

from projects.accounts import guesses, token_check
from projects.accounts.authentication import Caller
from projects.accounts.credentials import api_token_create
from projects.accounts.errors import RateLimited
from projects.accounts.token_check import TokenCheck
from projects.accounts.tokens import ShownToken, parse_token
from projects.enrolment.revocation import api_token_revoke
from projects.errors.access import Unauthenticated
from projects.models import ApiToken, Project, RateMeter
from projects.storage import clock
from projects.storage.access import NotLetThrough, at_length, in_database

pytestmark = pytest.mark.django_db(transaction=True)


class Action:
    """An action of two hops, which notes what was begun."""

    def __init__(self, hop: Any = in_database) -> None:
        self.begun: list[str] = []
        self._hop = hop

    async def __call__(self, caller: Caller) -> str:
        await self._hop(self.begun.append, "first")
        await self._hop(self.begun.append, "second")
        return caller.label


def _make() -> tuple[ApiToken, ShownToken]:
    project = Project.objects.create(name="p")
    row, text = api_token_create(project=project, name="t", scopes=("session:read",))
    return row, parse_token(text, "hl")


@pytest.fixture
async def made() -> tuple[ApiToken, ShownToken]:
    return await in_database(_make)


async def _remember(token: ShownToken) -> None:
    assert await TokenCheck(token).during(Action()) == "token:t"


@pytest.mark.parametrize("hop", [in_database, at_length])
async def test_a_token_that_was_revoked_since_begins_nothing(
    made: tuple[ApiToken, ShownToken], hop: Any
) -> None:
    row, token = made
    await _remember(token)
    await in_database(api_token_revoke, token=row, actor="admin:a")
    check, action = TokenCheck(token), Action(hop)
    assert (await check.presumed()).label == "token:t"
    with pytest.raises(NotLetThrough):
        await check.during(action)
    assert action.begun == []
    with pytest.raises(Unauthenticated):
        await check.caller()
    with pytest.raises(Unauthenticated):
        await TokenCheck(token).presumed()


async def test_parts_that_act_side_by_side_are_all_stopped(
    made: tuple[ApiToken, ShownToken],
) -> None:
    row, token = made
    await _remember(token)
    await in_database(api_token_revoke, token=row, actor="admin:a")
    parts = [Action() for _ in range(4)]

    async def act(caller: Caller) -> None:
        await asyncio.gather(*(part(caller) for part in parts), return_exceptions=True)

    with pytest.raises(NotLetThrough):
        await TokenCheck(token).during(act)
    assert [part.begun for part in parts] == [[]] * 4


async def test_a_caller_that_changed_is_told_before_anything_begins(
    made: tuple[ApiToken, ShownToken],
) -> None:
    row, token = made
    await _remember(token)
    await in_database(
        ApiToken.objects.filter(id=row.id).update, scopes=["session:start"], starts_per_minute=3
    )
    check, action = TokenCheck(token), Action()
    with pytest.raises(NotLetThrough):
        await check.during(action)
    assert action.begun == []
    caller = await check.caller()
    assert (caller.scopes, caller.starts_per_minute) == (frozenset({"session:start"}), 3)
    assert await TokenCheck(token).presumed() == caller


async def test_a_call_that_needs_no_database_is_checked_before_it_answers(
    made: tuple[ApiToken, ShownToken],
) -> None:
    row, token = made
    await _remember(token)
    await in_database(api_token_revoke, token=row, actor="admin:a")

    async def act(_caller: Caller) -> str:
        return "an answer"

    with pytest.raises(NotLetThrough):
        await TokenCheck(token).during(act)


async def test_a_good_call_reads_its_token_once_and_the_meter_seldom(
    made: tuple[ApiToken, ShownToken], monkeypatch: pytest.MonkeyPatch
) -> None:
    looked: list[str] = []
    found, checked = token_check.find_caller, guesses.rate_check
    monkeypatch.setattr(guesses, "ROOM_SECONDS", 600.0)
    monkeypatch.setattr(
        token_check, "find_caller", lambda *given: (looked.append("token"), found(*given))[1]
    )
    monkeypatch.setattr(
        guesses, "rate_check", lambda *given: (looked.append("meter"), checked(*given))[1]
    )
    for _ in range(3):
        await _remember(made[1])
    assert sorted(looked) == ["meter", "token", "token", "token"]


async def test_a_wrong_secret_is_not_remembered_and_blocks_the_key_at_once(
    made: tuple[ApiToken, ShownToken], settings: Any
) -> None:
    settings.LOGIN_FAILURES_PER_MINUTE = 2
    _, token = made
    await _remember(token)
    wrong = ShownToken(token.key_id, "A" * 43)
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            await TokenCheck(wrong).presumed()
    action = Action()
    check = TokenCheck(token)
    with pytest.raises((NotLetThrough, RateLimited)):
        await check.during(action)
    with pytest.raises(RateLimited):
        await check.caller()
    assert action.begun == []


async def test_a_block_of_another_process_holds_once_the_meter_is_read_again(
    made: tuple[ApiToken, ShownToken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guesses, "ROOM_SECONDS", 0.0)
    _, token = made
    await _remember(token)
    meter = guesses.meter_of(token, "")
    await in_database(RateMeter.objects.create, key=meter, free_at=clock.now_seconds() + 60)
    action = Action()
    with pytest.raises(NotLetThrough):
        await TokenCheck(token).during(action)
    assert action.begun == []


async def test_what_is_remembered_is_bounded(
    made: tuple[ApiToken, ShownToken], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(token_check, "_MAX_REMEMBERED", 1)
    monkeypatch.setattr(token_check, "_remembered", {})
    other = (await in_database(lambda: api_token_create(project=made[0].project, name="u")))[1]
    await _remember(made[1])
    await TokenCheck(parse_token(other, "hl")).caller()
    assert [caller.label for caller in token_check._remembered.values()] == ["token:u"]
