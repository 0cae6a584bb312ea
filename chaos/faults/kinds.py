"""Every kind of fault that there is, and the profiles that choose among them."""

from typing import Final

from chaos.faults.schedule import Kind


def _kind(
    name: str,
    targets: str,
    shortest: float = 0.0,
    longest: float = 0.0,
    *,
    needs: str | None = None,
    storage: str | None = None,
) -> Kind:
    return Kind(
        name=name,
        targets=frozenset(targets.split()),
        shortest=shortest,
        longest=longest,
        needs=needs,
        storage=storage,
    )


_ALL: Final = (
    _kind("server_kill", "server", 0.0, 3.0),
    _kind("server_term", "server"),
    _kind("server_stop", "server", 2.0, 12.0),
    _kind("daemon_kill", "daemon", 0.0, 4.0),
    _kind("daemon_term", "daemon"),
    _kind("daemon_stop", "daemon", 2.0, 12.0),
    _kind("fork_server_kill", "daemon"),
    _kind("fork_server_stop", "daemon", 2.0, 12.0),
    _kind("server_slow_start", "server", 2.0, 10.0),
    _kind("daemon_slow_start", "daemon", 2.0, 10.0),
    _kind("holder_kill", "holder"),
    _kind("holder_stop", "holder", 1.0, 8.0),
    _kind("everything_kill", "server daemon link backends", 0.0, 2.0),
    _kind("link_cut", "link"),
    _kind("link_stall", "link", 2.0, 30.0),
    _kind("link_half_open", "link", 2.0, 15.0),
    _kind("link_slow", "link", 4.0, 15.0),
    _kind("link_down", "link", 2.0, 15.0),
    _kind("front_cut", "front"),
    _kind("front_stall", "front", 1.0, 8.0),
    _kind("front_half_open", "front", 1.0, 8.0),
    _kind("front_slow", "front", 3.0, 10.0),
    _kind("front_down", "front", 1.0, 6.0),
    _kind("front_lossy", "front", 3.0, 10.0),
    _kind("server_descriptors", "server", 2.0, 10.0),
    _kind("daemon_descriptors", "daemon", 2.0, 10.0),
    _kind("server_memory", "server", 2.0, 8.0),
    _kind("daemon_memory", "daemon", 2.0, 8.0),
    _kind("server_disk_full", "data", 2.0, 10.0, needs="tmpfs", storage="sqlite"),
    _kind("daemon_disk_full", "state", 2.0, 10.0, needs="tmpfs"),
    _kind("server_disk_read_only", "data server", 2.0, 10.0, needs="tmpfs", storage="sqlite"),
    _kind("daemon_disk_read_only", "state daemon", 2.0, 10.0, needs="tmpfs"),
    _kind("server_processes", "server", 2.0, 10.0, needs="control groups"),
    _kind("daemon_processes", "daemon", 2.0, 10.0, needs="control groups"),
    _kind("sqlite_lock", "data", 1.0, 12.0, storage="sqlite"),
    _kind("second_daemon", "daemon", 3.0, 6.0),
    _kind("cloned_daemon", "daemon", 3.0, 8.0),
    _kind("daemon_versions", "daemon", 3.0, 8.0, needs="git"),
    _kind("server_versions", "server", 3.0, 8.0, needs="git"),
    _kind("restore", "server data backends database server_clock", 3.0, 10.0),
    _kind("server_clock", "server_clock", 2.0, 12.0, needs="cc"),
    _kind("daemon_clock", "daemon_clock", 2.0, 12.0, needs="cc"),
    _kind("postgresql_kill", "backends", 0.0, 3.0, storage="postgresql"),
    _kind("postgresql_term", "backends", 0.0, 3.0, storage="postgresql"),
    _kind("postgresql_stop", "backends", 2.0, 12.0, storage="postgresql"),
    _kind(
        "postgresql_processes", "backends", 2.0, 10.0, needs="control groups", storage="postgresql"
    ),
    _kind("postgresql_slow_start", "backends", 2.0, 8.0, storage="postgresql"),
    _kind("redis_kill", "redis", 0.0, 4.0, storage="postgresql"),
    _kind("redis_stop", "redis", 2.0, 12.0, storage="postgresql"),
    _kind("database_cut", "database", storage="postgresql"),
    _kind("database_stall", "database", 2.0, 12.0, storage="postgresql"),
    _kind("database_half_open", "database", 2.0, 12.0, storage="postgresql"),
    _kind("database_slow", "database", 3.0, 10.0, storage="postgresql"),
    _kind("database_down", "database", 1.0, 6.0, storage="postgresql"),
    _kind("redis_cut", "redis", storage="postgresql"),
    _kind("redis_stall", "redis", 2.0, 12.0, storage="postgresql"),
    _kind("redis_half_open", "redis", 2.0, 12.0, storage="postgresql"),
    _kind("redis_slow", "redis", 3.0, 10.0, storage="postgresql"),
    _kind("redis_down", "redis", 1.0, 6.0, storage="postgresql"),
)

_OF_A_SHORTAGE: Final = (
    "_full",
    "_read_only",
    "_lock",
    "_memory",
    "_descriptors",
    "_processes",
)
_OF_A_LINK: Final = ("_cut", "_stall", "_half_open", "_slow", "_lossy", "_down")

WITHOUT_PEOPLE: Final = frozenset({"restore"})

KINDS: Final = {kind.name: kind for kind in _ALL}

PROFILES: Final = {
    # Light and short: what a change breaks most easily.
    "short": [
        "server_kill",
        "server_stop",
        "daemon_kill",
        "holder_kill",
        "link_cut",
        "link_stall",
        "front_lossy",
        "front_cut",
    ],
    "deaths": [kind.name for kind in _ALL if kind.name.endswith(("_kill", "_term", "_stop"))],
    "network": [kind.name for kind in _ALL if kind.name.endswith(_OF_A_LINK)],
    "starts": [kind.name for kind in _ALL if kind.name.endswith("_slow_start")],
    "shortages": [kind.name for kind in _ALL if kind.name.endswith(_OF_A_SHORTAGE)],
    "read_only": ["server_disk_read_only", "daemon_disk_read_only"],
    "processes": [kind.name for kind in _ALL if kind.name.endswith("_processes")],
    "strangers": ["second_daemon", "cloned_daemon", "daemon_versions"],
    "versions": ["daemon_versions", "server_versions"],
    "restores": ["restore", "daemon_kill", "link_cut", "link_stall", "front_lossy"],
    "clocks": ["server_clock", "daemon_clock"],
    # A restore logs people out and gives numbers of questions again: it goes on without people.
    "all": [name for name in KINDS if name not in WITHOUT_PEOPLE],
}
