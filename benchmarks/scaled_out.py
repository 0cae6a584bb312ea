"""W2 on PostgreSQL, Redis and two server processes, with a real daemon.

``python -m benchmarks.scaled_out``

Blocks of turns go alternately through the process that holds the daemon's socket and through the
other one, so that both see the same load of the machine. With ``--seeded-chunks`` everything is
measured again beside that many stored chunks of finished sessions.
"""

import asyncio
import time

from benchmarks.harness import arguments, in_ms, machine, percentile
from tests.support.databases.cluster import Cluster, running_backends, running_cluster
from tests.support.mcp.client import Caller
from tests.support.processes import children_of, cpu_seconds

_CHUNKS_PER_SESSION = 200
_SEED = """
WITH host AS (SELECT id, project_id FROM projects_controller WHERE name = 'host'),
made AS (
  INSERT INTO projects_commandsession
  SELECT (jsonb_populate_record(s, jsonb_build_object(
    'id', gen_random_uuid(), 'state', 'EXITED', 'slot', NULL, 'ended_at', now(),
    'stdout_first_offset', 0, 'stdout_next_offset', {size}
  ))).*
  FROM projects_commandsession s, generate_series(1, {sessions})
  WHERE s.id = '{template}' RETURNING id)
INSERT INTO projects_outputchunk (session_id, stream, "offset", size, seq, data, created_at)
SELECT made.id, 'stdout', n * 100, 100, n + 1, convert_to(repeat('x', 100), 'UTF8'), now()
FROM made, generate_series(0, {per_session} - 1) n
"""


async def _compare(cluster: Cluster, blocks: int, turns: int, what: str) -> tuple[float, float]:
    """Return the medians in seconds, through the socket's process and through the other."""
    near, far = cluster.socket_worker(), cluster.other_worker()
    seconds: dict[int, list[float]] = {near: [], far: []}
    async with cluster.caller_at(near) as one, cluster.caller_at(far) as other:
        session = await one.start(
            'bash -c \'while read -p "> " x; do echo "got $x"; done\'', lifetime_seconds=3000
        )

        async def block(worker: int, caller: Caller) -> None:
            session.caller = caller
            for number in range(turns):
                began = time.perf_counter()
                answer = await session.send(f"w{number}\n", wait_seconds=20)
                seconds[worker].append(time.perf_counter() - began)
                assert answer["state"] == "awaiting_input", answer
                assert f"got w{number}" in answer["output"]

        for _ in range(3):
            await block(near, one)
            await block(far, other)
        for found in seconds.values():
            found.clear()
        before = _spent(cluster)
        for _ in range(blocks):
            await block(near, one)
            await block(far, other)
        spent = _spent(cluster)
        await session.terminate()
    count = sum(map(len, seconds.values()))
    print(
        "   processor ms per turn: "
        + ", ".join(f"{name} {1000 * (spent[name] - before[name]) / count:.2f}" for name in spent)
    )
    print(in_ms(f"W2 {what}, same process", seconds[near], "p50 <= 25"))
    print(in_ms(f"W2 {what}, other process", seconds[far]))
    medians = percentile(seconds[near], 0.5), percentile(seconds[far], 0.5)
    fastest = [1000 * percentile(found, 0.1) for found in seconds.values()]
    print(
        f"   fastest tenth {fastest[0]:.1f} and {fastest[1]:.1f} ms; ratio "
        f"{fastest[1] / fastest[0]:.2f}"
    )
    print(f"   ratio of the medians {medians[1] / medians[0]:.2f}   target <= 1.3")
    return medians


def _spent(cluster: Cluster) -> dict[str, float]:
    postmaster = cluster.backends.postgres.process
    assert postmaster is not None
    pids = {
        "server": [process.pid for process in cluster.server_processes()],
        "database": [postmaster.pid, *children_of(postmaster.pid)],
    }
    return {name: sum(map(cpu_seconds, found)) for name, found in pids.items()}


def _seed(cluster: Cluster, chunks: int) -> None:
    template = cluster.database.rows(
        "SELECT id FROM projects_commandsession WHERE state <> 'RUNNING' LIMIT 1"
    )[0][0]
    sessions = chunks // _CHUNKS_PER_SESSION
    size = _CHUNKS_PER_SESSION * 100
    cluster.database.execute(
        _SEED.format(
            size=size, sessions=sessions, template=template, per_session=_CHUNKS_PER_SESSION
        )
    )
    name = cluster.server_environment()["DATABASE_URL"].rpartition("/")[2]
    for statement in ("VACUUM ANALYZE", "CHECKPOINT"):
        cluster.backends.postgres.execute(statement, name)
    print(
        f"   seeded: {cluster.database.rows('SELECT count(*) FROM projects_outputchunk')[0][0]} "
        "chunks"
    )


def main() -> None:
    """Print the time of a turn through each process and their ratio, without and with chunks."""
    options = arguments(main.__doc__ or "", blocks=10, turns=20, seeded_chunks=1_000_000)
    print(machine())
    with (
        running_backends(is_durable=True) as backends,
        running_cluster(backends=backends) as cluster,
    ):
        empty = asyncio.run(_compare(cluster, options.blocks, options.turns, "empty"))
        if options.seeded_chunks:
            _seed(cluster, options.seeded_chunks)
            full = asyncio.run(_compare(cluster, options.blocks, options.turns, "seeded"))
            print(f"   seeded against empty: {full[0] / empty[0]:.2f} and {full[1] / empty[1]:.2f}")


if __name__ == "__main__":
    main()
