"""A test message to one target, sent at once: it shows an operator that the target receives."""

import asyncio

from projects.attention.messages import letter_of
from projects.attention.sending import SendResult, send
from projects.attention.telling import message_of
from projects.models import AttentionMessage, AttentionTarget
from projects.storage import clock


def trial_send(target: AttentionTarget) -> SendResult:
    """Send a test message and store what came of it; it is tried once, not on a running loop."""
    message = message_of(target, "test", [])
    # Stored without being due: the worker must not send it as well.
    message.due_at = None
    message.save(force_insert=True)
    letter = letter_of(message)
    outcome = asyncio.run(send(letter))
    ends = {"dead_at": clock.now()} if outcome.error else {"sent_at": clock.now()}
    AttentionMessage.objects.filter(id=message.id).update(
        attempts=1, last_error=outcome.error, **ends
    )
    return outcome
