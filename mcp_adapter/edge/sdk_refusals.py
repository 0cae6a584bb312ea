"""The SDK's refusals of requests, with the code and the hint that every error of ours has.

A request that is none is refused by a body; one whose method or parameters are wrong, in a stream.
"""

import json
import re
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

from projects.errors.calls import RequestNotUnderstood

Message = dict[str, Any]
Send = Callable[[Message], Awaitable[Any]]

_OF_THE_VALIDATOR: Final = "Validation error"
_EVENT: Final = b"event: message\r\ndata: "
_END: Final = b"\r\n\r\n"
_ERROR_EVENT: Final = re.compile(
    re.escape(_EVENT)
    + rb'(\{"jsonrpc":"2\.0","id":(?:-?\d+|null|"(?:[^"\\]|\\.)*"),"error":.*\})'
    + _END
)
_NO_REQUEST: Final = "the body is no request of JSON-RPC 2.0"


def explained(send: Send) -> Send:
    """``send`` that adds what is missing to a refusal.

    The SDK sends a body in one piece, and each event of a stream in one.
    """
    held: list[Message] = []

    async def explaining(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] >= HTTPStatus.BAD_REQUEST:
            held.append(message)
        elif held:
            await _send_explained(send, held.pop(), message)
        elif found := _ERROR_EVENT.fullmatch(message.get("body", b"")):
            await send({**message, "body": _EVENT + _with_data(found[1]) + _END})
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
        text, about = str(error["message"]), error.get("data")
    except (ValueError, LookupError, TypeError, AttributeError):
        return body
    if isinstance(about, dict):
        return body
    if about:
        text = f"{text}: {about}"
    if text.startswith(_OF_THE_VALIDATOR):
        # It lists how each type of message differs, at length.
        text = _NO_REQUEST
    data = RequestNotUnderstood(text).body()
    message = f"{text}. {data['hint']}"
    return json.dumps({**refusal, "error": {**error, "message": message, "data": data}}).encode()
