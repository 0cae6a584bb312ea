"""Response headers for which Django has no setting."""

import secrets
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

_POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'; "
    "img-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)


def content_security_policy(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Let pages run only our own scripts.

    Program output that reached a page unescaped could still not run as a script. The terminal
    emulator makes style elements: the nonce of the response, ``request.style_nonce``, allows them.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        nonce = secrets.token_urlsafe(16)
        request.style_nonce = nonce  # type: ignore[attr-defined]
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", _POLICY.format(nonce=nonce))
        return response

    return middleware
