"""The HTTP client of the bridge: a server that cannot be reached is the failure of one call, never the end of the bridge."""

from typing import Any, Final

import httpx2

CANNOT_REACH: Final = -32000
# As the SDK's own: long enough for the longest wait of a call.
_TIMEOUT: Final = httpx2.Timeout(30.0, read=300.0)


class PatientClient(httpx2.AsyncClient):
    """Answers in place of the server where there is no answer, with an error that the SDK takes for that of the request."""

    def __init__(self, token: str) -> None:
        super().__init__(headers={"Authorization": f"Bearer {token}"}, timeout=_TIMEOUT)

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        """The answer, read to its end unless it is a stream of events, whose end the SDK bears."""
        try:
            response = await super().send(request, **options)
            if not response.headers.get("content-type", "").startswith("text/event-stream"):
                await response.aread()
        except httpx2.TransportError as error:
            said = f"the server cannot be reached ({error or type(error).__name__}); whether it took this call is not known"
            body = {"jsonrpc": "2.0", "id": None, "error": {"code": CANNOT_REACH, "message": said}}
            return httpx2.Response(503, json=body, request=request)
        return response
