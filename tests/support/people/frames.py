"""The frames of the console's socket, as a page reads them."""

import json
from typing import Any


def message_of(frame: str | bytes) -> dict[str, Any]:
    """The message in a frame of the server: text is JSON, and bytes are output."""
    if isinstance(frame, str):
        return dict(json.loads(frame))
    stream = "stderr" if frame[0] else "stdout"
    offset = int.from_bytes(frame[1:9])
    return {"type": "output", "stream": stream, "offset": offset, "data": frame[9:]}
