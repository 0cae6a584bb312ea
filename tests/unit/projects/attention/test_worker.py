"""The worker tells a real listener, and goes on where a worker died."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from django.test import override_settings
from django.utils import timezone

from projects.attention import messages, worker
from projects.attention.messages import send_again
from projects.attention.targets import Way, target_save
from projects.attention.worker import Worker
from projects.models import AttentionEvent, AttentionMessage, AttentionTarget, Controller, Project
from projects.storage.access import in_database
from tests.support.rows import make_session
from tests.support.targets.listener import Listener, listening
from tests.support.waiting import await_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
async def listener(controller: Controller) -> AsyncIterator[Listener]:
    """A listener that is the target of a project which wants secrets at once."""
    with override_settings(ATTENTION_NETWORKS=("127.0.0.0/8",)), listening() as found:
        await in_database(_aim, controller, found.url)
        yield found


def _aim(host: Controller, url: str) -> None:
    Project.objects.update(attention_seconds={"secret_wanted": 0, "resolved": 0})
    target = AttentionTarget(project=host.project, name="ops", way=Way.WEBHOOK)
    target_save(target, address=url, key=None, actor="test")
    waiting = {"terminal_state": "awaiting_input", "terminal_kind": "secret"}
    make_session(host, started_at=timezone.now() - timedelta(seconds=1), **waiting)


def _message() -> AttentionMessage:
    return AttentionMessage.objects.get(kind="secret_wanted")


async def _sent() -> AttentionMessage:
    await await_until(lambda: in_database(lambda: _message().attempts > 0), 30, "an attempt")
    return await in_database(_message)


async def test_one_round_tells_of_a_prompt_that_waits(listener: Listener) -> None:
    working = Worker()
    await working.round()
    message = await _sent()
    await working.round()
    assert message.sent_at is not None
    assert [request.headers["webhook-id"] for request in listener.requests] == [
        f"msg_{message.id.hex}"
    ]


async def test_a_worker_that_died_after_sending_is_repeated_with_one_id(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as dying:
        # The listener has the message, and the worker dies before that is stored.
        died: list[object] = []
        dying.setattr(messages, "record", lambda *_: died.append(_))
        dying.setattr(worker.messages, "record", lambda *_: died.append(_))
        await Worker().round()
        await await_until(lambda: died, 30, "the message to arrive and the worker to die")
    await Worker().round()
    message = await _sent()
    ids = [request.headers["webhook-id"] for request in listener.requests]
    assert ids == [f"msg_{message.id.hex}"] * 2


async def test_a_failing_listener_becomes_a_dead_letter_that_can_be_sent(
    listener: Listener,
) -> None:
    listener.status = 500
    await Worker().round()
    message = await _sent()
    assert (message.last_error, message.dead_at) == ("the answer was 500", None)
    assert message.due_at is not None

    def a_day_later() -> None:
        began_at = timezone.now() - messages.TRIED_FOR
        AttentionMessage.objects.update(began_at=began_at, due_at=timezone.now(), attempts=0)

    await in_database(a_day_later)
    await Worker().round()
    dead = await _sent()
    assert (dead.due_at, dead.dead_at is None) == (None, False)
    listener.status = 204
    assert await in_database(lambda: send_again(dead, actor="admin:ada"))
    assert not await in_database(lambda: send_again(dead, actor="admin:ada"))
    await Worker().round()
    assert (await _sent()).sent_at is not None
    assert len({request.headers["webhook-id"] for request in listener.requests}) == 1


async def test_all_that_waited_follows_in_order_once_the_listener_is_back(
    listener: Listener,
) -> None:
    listener.status = 503
    working = Worker()
    await working.round()
    await _sent()
    await in_database(_keep_three_waiting)
    listener.requests.clear()
    listener.status = 204
    unsent = AttentionMessage.objects.filter(sent_at__isnull=True)
    for left in (3, 2, 1, 0):
        await working.round()
        await await_until(lambda n=left: in_database(lambda: unsent.count() == n), 30, "a result")
    ids = [request.headers["webhook-id"] for request in listener.requests]
    sent = await in_database(lambda: list(AttentionMessage.objects.order_by("created_at")))
    assert ids == [f"msg_{message.id.hex}" for message in sent]


def _keep_three_waiting() -> None:
    """One message is due after an hour of failures; newer ones wait, the newest the shortest."""
    first, now = _message(), timezone.now()
    AttentionMessage.objects.update(due_at=now, attempts=9)
    for minutes in (50, 30, 10):
        AttentionMessage.objects.create(
            target=first.target,
            kind="test",
            event_count=1,
            body=first.body,
            attempts=8,
            due_at=now + timedelta(minutes=minutes),
        )


async def test_a_silent_listener_delays_no_other_target(
    listener: Listener, controller: Controller
) -> None:
    listener.is_silent = True
    with listening() as other:
        await in_database(_aim_second, controller, other.url)
        working = Worker()
        await working.round()
        await await_until(lambda: other.requests and listener.requests, 30, "both messages")
        await working.round()
        # The one that is on its way is not sent a second time meanwhile.
        assert len(listener.requests) == 1
        listener.release()
        unsent = AttentionMessage.objects.filter(sent_at__isnull=True)
        await await_until(lambda: in_database(lambda: not unsent.exists()), 30, "both results")


def _aim_second(host: Controller, url: str) -> None:
    target = AttentionTarget(project=host.project, name="other", way=Way.WEBHOOK)
    target_save(target, address=url, key=None, actor="test")


async def test_of_two_processes_one_works(
    listener: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker.duty, "take", lambda *_: False)
    await Worker().round()
    assert not await in_database(AttentionEvent.objects.exists)
    assert listener.requests == []


def test_pauses_grow_to_an_hour_and_fill_a_day() -> None:
    pauses = [messages.pause_after(attempt) for attempt in range(1, 40)]
    assert 4 <= pauses[0] <= 6
    assert all(pause <= 1.2 * 3600 for pause in pauses)
    assert sum(pauses) > messages.TRIED_FOR.total_seconds()
