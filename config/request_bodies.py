"""Bodies of requests are read once, by whom they are for.

Daphne's web library would parse the Content-Type of every POST, and whole forms, before anyone asked for it: that is a twentieth of a turn,
and the memory of every upload a second time.
"""

import sys


def leave_to_application() -> None:
    """Tells Daphne so, if it is what serves. To be called before its first connection."""
    if "daphne.http_protocol" not in sys.modules:
        return
    from daphne import http_protocol

    class Request(http_protocol.WebRequest):  # type: ignore[misc] # daphne is untyped
        def __init__(self, *arguments: object) -> None:
            super().__init__(*arguments, parsePOSTFormSubmission=False)

    http_protocol.WebRequest = Request
