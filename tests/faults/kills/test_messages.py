"""A program asks for a password, and a person is told of it although the server is killed."""

from collections.abc import Iterator

import pytest

from tests.support.management import manage_well
from tests.support.stack import Stack, running_stack
from tests.support.targets.listener import Listener, listening
from tests.support.waiting import await_until, wait_until

# Not a path of the product: the words of the prompt must not leave the server.
_ASKS = """bash -c 'read -r -s -p "Password of zarniwoop: " s; echo; echo went on'"""


@pytest.fixture
def telling() -> Iterator[tuple[Stack, Listener]]:
    """A stack whose project wants secrets at once, with a listener as its target."""
    allowed = {"HOLDLINE_ATTENTION_NETWORKS": "127.0.0.0/8"}
    with listening() as listener, running_stack(server_environment=allowed) as stack:
        stack.database.execute(
            "UPDATE projects_project SET attention_seconds = ?",
            '{"secret_wanted": 0, "resolved": 0}',
        )
        set_target = ("set_attention_target", "first", "ops", "--way", "webhook")
        manage_well(stack, *set_target, stdin=f"{listener.url}/hook\n")
        yield stack, listener


@pytest.mark.fault
async def test_a_message_survives_kills_of_the_server_with_one_id(
    telling: tuple[Stack, Listener],
) -> None:
    stack, listener = telling
    listener.is_silent = True
    async with stack.caller() as caller:
        session = await caller.start(_ASKS)
        assert session.kind == "secret"
        await await_until(lambda: listener.requests, 90, "the first attempt")
        # The listener has the message, and the server dies before it has the answer.
        stack.kill_server()
    listener.release()
    stack.start_server()
    sent = "SELECT count(*) FROM projects_attentionmessage WHERE sent_at IS NOT NULL"
    wait_until(lambda: stack.database.rows(sent) == [(1,)], 120, "the message to be received")
    assert len(listener.requests) >= 2
    assert len({request.headers["webhook-id"] for request in listener.requests}) == 1
    async with stack.caller() as caller:
        answer = await caller.call(
            "send_command_input",
            session_id=session.session_id,
            input_text="vogon\n",
            wait_seconds=30,
        )
        assert "went on" in answer["output"]
    wait_until(lambda: stack.database.rows(sent) == [(2,)], 120, "the end to be told")
    assert b"attention.resolved" in listener.requests[-1].body
    told = b"".join(request.body for request in listener.requests)
    assert b"zarniwoop" not in told
    assert b"vogon" not in told
    assert stack.database.rows("SELECT count(*) FROM projects_attentionevent") == [(1,)]


@pytest.mark.fault
async def test_a_test_event_says_what_each_target_answers(
    telling: tuple[Stack, Listener],
) -> None:
    stack, listener = telling
    assert "ops: received" in manage_well(stack, "send_test_event", "first")
    assert b"attention.test" in listener.requests[0].body
    assert "messages that are sent again: 0" in manage_well(stack, "send_again", "first")
