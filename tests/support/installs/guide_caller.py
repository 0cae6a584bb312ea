"""A caller on the machine of the guides, by the standard library alone: it is copied there.

``guide_caller.py TOOL ARGUMENTS`` makes one call and writes its result. ``guide_caller.py FILE``
makes calls of ``execute_command``, several side by side, until FILE is there. Then it writes what
became of them.
"""

import json
import sys
import threading
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

_ADDRESS: Final = "https://holdline.example.com/mcp"
_TOKEN: Final = Path("/srv/token")
_VERSION: Final = "2026-07-28"
_SECONDS: Final = 60.0
# The last line of standard output is the mark; the file has one line for each time that it ran.
_BRIEF: Final = "echo {0} >>calls; echo {0}"
_WAITING: Final = "sleep 5; echo {0} >>calls; echo {0}"
_SIDE_BY_SIDE: Final = {"a": _BRIEF, "b": _BRIEF, "c": _WAITING, "d": _WAITING}
_PAUSE_SECONDS: Final = 0.1
_MOST_TRIES: Final = 30


class RefusedError(Exception):
    """The server refused a call; ``body`` is the error body."""

    def __init__(self, body: dict[str, Any]) -> None:
        self.body = body
        super().__init__(json.dumps(body))


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool, as any MCP client does, and return its structured result.

    Raises RefusedError, and OSError if there is no answer.
    """
    meta = {
        "io.modelcontextprotocol/protocolVersion": _VERSION,
        "io.modelcontextprotocol/clientInfo": {"name": "guide", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    asked = {"name": tool, "arguments": arguments, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    headers = {
        "authorization": f"Bearer {_TOKEN.read_text().strip()}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": _VERSION,
        "mcp-method": "tools/call",
        "mcp-name": tool,
    }
    request = urllib.request.Request(_ADDRESS, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=_SECONDS) as answer:
            result = json.loads(answer.read())["result"]
    except urllib.error.HTTPError as error:
        said = error.read()
        try:
            raise RefusedError(json.loads(said)["error"]["data"]) from None
        except (ValueError, KeyError, TypeError):
            raise OSError(f"{error.code}: {said!r}") from None
    if result.get("isError"):
        raise RefusedError(result["_meta"]["holdline/error"])
    found: dict[str, Any] = result["structuredContent"]
    return found


def _load(end: Path) -> dict[str, Any]:
    """Call until ``end`` is there.

    Returns ``marks`` of all calls; ``longest``, the seconds of the longest call of each kind;
    ``repeated``, how often each answer made a caller repeat its call; ``failed``, the answers that
    no caller expects.
    """
    told: dict[str, Any] = {"marks": [], "longest": {}, "repeated": {}, "failed": []}
    with ThreadPoolExecutor(len(_SIDE_BY_SIDE)) as pool:
        for ran in [pool.submit(_call_on, name, end, told) for name in _SIDE_BY_SIDE]:
            ran.result()
    return told


def _call_on(name: str, end: Path, told: dict[str, Any]) -> None:
    while not end.exists():
        mark = f"{name}{uuid4().hex}"
        began = time.monotonic()
        try:
            _run_once(_SIDE_BY_SIDE[name].format(mark), mark, told["repeated"])
        except (OSError, ValueError, RefusedError) as error:
            told["failed"].append(f"{mark}: {error}")
        seconds = time.monotonic() - began
        told["marks"].append(mark)
        told["longest"][name] = max(seconds, told["longest"].get(name, 0.0))
        threading.Event().wait(_PAUSE_SECONDS)


def _run_once(command: str, mark: str, repeated: dict[str, int]) -> None:
    """Have a command run once, by as many calls with one ``request_id`` as that takes."""
    arguments = {"command": command, "request_id": str(uuid4())}
    for _ in range(_MOST_TRIES):
        try:
            result = call("execute_command", arguments)
        except RefusedError as error:
            if not error.body["retryable"]:
                raise
            reason = error.body["code"]
        else:
            if result["return_code"] is not None:
                if result["return_code"] or result["stdout"].strip() != mark:
                    raise ValueError(json.dumps(result))
                return
            # A process that is being stopped answers with what there is.
            reason = result["error"]
        repeated[reason] = repeated.get(reason, 0) + 1
        threading.Event().wait(_PAUSE_SECONDS)
    raise ValueError(f"{_MOST_TRIES} times {reason}")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.stdout.write(json.dumps(call(sys.argv[1], json.loads(sys.argv[2]))))
    else:
        sys.stdout.write(json.dumps(_load(Path(sys.argv[1]))))
