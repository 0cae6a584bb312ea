"""The HTTP client of the bridge.

When the server cannot be reached, or refuses, one call fails, and its error says why.
"""

import json
from typing import Any, Final

import httpx2
from mcp_types import INTERNAL_ERROR, METHOD_NOT_FOUND

NOT_FOUND: Final = 404
_OF_OTHER_ADDRESSES: Final = frozenset({403, NOT_FOUND, 405})
"""How a web server answers a POST at an address that is a page, or nothing."""
_MAX_SAID_CHARS: Final = 500
# These are the SDK's own limits: the longest wait of a call fits in.
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)


class PatientClient(httpx2.AsyncClient):
    """Turn every failure into an error of the MCP protocol.

    The SDK shows its caller no other failure, neither a lost connection nor a proxy's page.
    """

    def __init__(self, token: str) -> None:
        super().__init__(headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """Return the answer, read to its end unless it is a stream of events.

        The SDK itself copes with a stream that breaks.
        """
        try:
            response = await super().send(request, **options)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await response.aread()
        except httpx2.TransportError as error:
            never_sent = isinstance(
                error, (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
            )
            fate = (
                "the call was not sent" if never_sent else "whether it took this call is not known"
            )
            said = f"the server cannot be reached ({error or type(error).__name__}); {fate}"
            return _refusal(503, said, request)
        if request.method != "POST" or not response.is_error:
            return response
        body = _json_of(response)
        if isinstance(body.get("error"), dict):
            # This is an error of the protocol already.
            return response
        said = (
            ". ".join(
                text for text in (body.get("error"), body.get("hint")) if isinstance(text, str)
            )
            or "no reason given"
        )
        if not body and response.status_code in _OF_OTHER_ADDRESSES:
            said += ". Does the address end in /mcp?"
        return _refusal(
            response.status_code,
            f"{response.status_code} {response.reason_phrase}: {said[:_MAX_SAID_CHARS]}",
            request,
        )


def _refusal(status: int, message: str, request: httpx2.Request) -> httpx2.Response:
    # These are the SDK's own codes for a refusal. By them it finds out what a server does not know.
    code = METHOD_NOT_FOUND if status == NOT_FOUND else INTERNAL_ERROR
    body = {"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}}
    return httpx2.Response(status, json=body, request=request)


def _json_of(response: httpx2.Response) -> dict[str, Any]:
    """Return the body if it is a JSON object, else an empty dict, as for a proxy's page."""
    try:
        body = json.loads(response.content)
    except (ValueError, RecursionError, httpx2.ResponseNotRead):
        return {}
    return body if isinstance(body, dict) else {}
