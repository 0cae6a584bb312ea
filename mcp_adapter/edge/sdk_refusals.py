"""The SDK's refusals of whole requests, with the code and the hint that every error of ours has."""

import json
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from projects.errors.calls import RequestNotUnderstood

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[Any]]

_OF_THE_VALIDATOR: Final = "Validation error"
_NO_REQUEST: Final = "the body is no request of JSON-RPC 2.0"


def explained(send: Send) -> Send:
    """``send`` that adds what is missing to a refusal, which the SDK sends in one piece."""
    held: list[Message] = []

    async def explaining(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST:
            held.append(message)
        elif held:
            await _send_explained(send, held.pop(), message)
        else:
            await send(message)

    return explaining


async def _send_explained(send: Send, start: Message, answer: Message) -> None:
    body = _with_data(answer.get("body", b""))
    kept = [each for each in start.get("headers", ()) if each[0].lower() != b"content-length"]
    await send({**start, "headers": [*kept, (b"content-length", str(len(body)).encode())]})
    await send({**answer, "body": body})


def _with_data(body: bytes) -> bytes:
    """The body of a refusal of JSON-RPC with the data of our errors; any other body as it is."""
    try:
        refusal = json.loads(body)
        error = refusal["error"]
        text = str(error["message"])
    except (ValueError, LookupError, TypeError):
        return body
    if error.get("data"):
        return body
    if text.startswith(_OF_THE_VALIDATOR):
        # It lists how each type of message differs, at length.
        text = _NO_REQUEST
    data = RequestNotUnderstood(text).body()
    message = f"{text}. {data['hint']}"
    return json.dumps({**refusal, "error": {**error, "message": message, "data": data}}).encode()
