"""Measure the cost of ``/mcp`` over a service's: HTTP, token check, protocol, validation.

``python -m benchmarks.mcp_overhead``
"""

import asyncio
import http.client
import json
import os
import time
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from benchmarks.harness import arguments, in_ms, measure, percentile
from tests.support.mcp.client import Caller
from tests.support.processes import cpu_seconds
from tests.support.stack import Stack

_WARM_UP = 50
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "benchmark", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_TOOL = "read_session_output"
ERAS: Mapping[str, tuple[dict[str, str], dict[str, Any]]] = {
    "2026-07-28": (
        {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": _TOOL},
        {"_meta": _META},
    ),
    "2025-06-18": ({"mcp-protocol-version": "2025-06-18"}, {}),
}


def main() -> None:
    """Print the time of a read by the service alone and by ``/mcp``, and their difference.

    ``/mcp`` is called on one connection that stays open. The difference is that of the medians.
    """
    options = arguments(main.__doc__ or "", calls=1000)

    async def body(stack: Stack, caller: Caller) -> None:
        async with caller.terminal("cat") as session:
            await session.send("x\n")
            alone = await _by_the_service(stack, session.session_id, options.calls)
            print(in_ms("service alone", alone))
            for era in ERAS:
                assert stack.server is not None
                spent = cpu_seconds(stack.server.pid)
                seconds = await asyncio.to_thread(
                    _over_http, stack, session.session_id, era, options.calls
                )
                spent = cpu_seconds(stack.server.pid) - spent
                print(in_ms(f"/mcp {era}", seconds))
                print(
                    f"{'':<28} the server's own time "
                    f"{1000 * spent / (options.calls + _WARM_UP):.2f} ms a call"
                )
                print(
                    f"{'':<28} overhead "
                    f"p50={1000 * (percentile(seconds, 0.5) - percentile(alone, 0.5)):8.2f} ms   "
                    "target p50 <= 5"
                )

    measure(body)


async def _by_the_service(stack: Stack, session_id: str, calls: int) -> list[float]:
    """Time reads by the service in this process, on the stack's database."""
    os.environ |= {
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
        "HOLDLINE_DATA_DIR": str(stack.data_dir),
    }
    import django

    django.setup()
    from projects.reads import status as reading

    project_id = UUID(
        str(stack.database.rows("SELECT id FROM projects_project WHERE name = 'first'")[0][0])
    )
    seconds = []
    for _ in range(calls + _WARM_UP):
        before = time.perf_counter()
        output = await reading.session_read_output(project_id, UUID(session_id))
        seconds.append(time.perf_counter() - before)
        if "x" not in output.output:
            raise SystemExit(f"a wrong answer: {output}")
    return seconds[_WARM_UP:]


def _over_http(stack: Stack, session_id: str, era: str, calls: int) -> list[float]:
    """Time reads by ``/mcp``, with a client that costs next to nothing."""
    own_headers, own_params = ERAS[era]
    headers = {
        "authorization": f"Bearer {stack.provisioned.token}",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        **own_headers,
    }
    params = {"name": _TOOL, "arguments": {"session_id": session_id}, **own_params}
    message = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
    connection = http.client.HTTPConnection("127.0.0.1", stack.port, timeout=30)
    seconds = []
    for _ in range(calls + _WARM_UP):
        before = time.perf_counter()
        connection.request("POST", "/mcp", message, headers)
        answer = connection.getresponse().read()
        seconds.append(time.perf_counter() - before)
        if b'"isError":false' not in answer:
            raise SystemExit(f"a wrong answer: {answer.decode()}")
    connection.close()
    return seconds[_WARM_UP:]


if __name__ == "__main__":
    main()
