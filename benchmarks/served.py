"""One checkout of the project with a server and a daemon, for a benchmark in another process.

Run it as ``python benchmarks/served.py SERVER cluster|embedded`` in the directory of a checkout,
with that directory in ``PYTHONPATH``: it may be older than this file. It prints one line of JSON,
obeys lines on its standard input (``ended COUNT``: add so many ended sessions), and ends with it.
"""

import json
import os
import sys
from contextlib import ExitStack
from typing import Any

from tests.support.stack import Stack, running_stack

# Nobody limits how often a benchmark may act.
os.environ |= {"HOLDLINE_STARTS_PER_MINUTE": "0", "HOLDLINE_INPUT_BYTES_PER_MINUTE": "0"}
_SESSIONS = 1000
_ENDED = """
WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})
INSERT INTO projects_commandsession ({columns})
SELECT {values} FROM numbers, (SELECT * FROM projects_commandsession WHERE state NOT IN
('PENDING', 'SENT', 'RUNNING') LIMIT 1)
"""


def _cluster(on_exit: ExitStack) -> tuple[Stack, dict[str, Any]]:
    try:
        from tests.support.databases.cluster import Cluster, running_backends
    except ModuleNotFoundError:  # where older checkouts have it
        from tests.support.cluster import Cluster, running_backends  # type: ignore[no-redef]

    backends = on_exit.enter_context(running_backends(is_durable=True))
    kind = type("OneServer", (Cluster,), {"WORKER_COUNT": 1})
    stack = kind(backends=backends, max_interactive_sessions=_SESSIONS)
    on_exit.callback(stack.stop)
    stack.start()
    assert backends.postgres.process is not None
    assert backends.redis.process is not None
    storage = {"postgres": backends.postgres.process.pid, "redis": backends.redis.process.pid}
    return stack, {"port": stack.worker_ports[0], **storage}


def _add_ended(stack: Stack, count: int) -> None:
    """Copies of one ended session, older than every other session."""
    names = [row[1] for row in stack.database.rows("PRAGMA table_info(projects_commandsession)")]
    changed = {
        "id": "lower(hex(randomblob(16)))",
        "created_at": "datetime('now', '-2 hours', '-' || n || ' seconds')",
    }
    columns = ", ".join(f'"{name}"' for name in names)
    values = ", ".join(changed.get(name, f'"{name}"') for name in names)
    stack.database.execute(_ENDED.format(count=count, columns=columns, values=values))


def main() -> None:
    """Serve until the standard input ends."""
    Stack.SERVER_KIND = sys.argv[1]
    with ExitStack() as on_exit:
        if sys.argv[2] == "cluster":
            stack, more = _cluster(on_exit)
        else:
            stack = on_exit.enter_context(running_stack(max_interactive_sessions=_SESSIONS))
            more = {"port": stack.port}
        assert stack.daemon is not None
        told = {
            "token": stack.provisioned.token,
            "daemon": stack.daemon.pid,
            "servers": [process.pid for process in stack.server_processes()],
            **more,
        }
        print(json.dumps(told), flush=True)
        for line in sys.stdin:
            _add_ended(stack, int(line.split()[1]))
            print("{}", flush=True)


if __name__ == "__main__":
    main()
