"""Every kind of fault that there is, and the profiles that choose among them."""

from typing import Final

from chaos.faults.schedule import Kind


def _kind(
    name: str, targets: str, shortest: float = 0.0, longest: float = 0.0, needs: str | None = None
) -> Kind:
    return Kind(name, frozenset(targets.split()), shortest, longest, needs=needs)


KINDS: Final = {
    kind.name: kind
    for kind in (
        _kind("server_kill", "server", 0.0, 3.0),
        _kind("server_term", "server"),
        _kind("server_stop", "server", 2.0, 12.0),
        _kind("daemon_kill", "daemon", 0.0, 4.0),
        _kind("daemon_term", "daemon"),
        _kind("daemon_stop", "daemon", 2.0, 12.0),
        _kind("fork_server_kill", "daemon"),
        _kind("holder_kill", "holder"),
        _kind("holder_stop", "holder", 1.0, 8.0),
        _kind("link_cut", "link"),
        _kind("link_stall", "link", 2.0, 30.0),
        _kind("link_half_open", "link", 2.0, 15.0),
        _kind("link_slow", "link", 4.0, 15.0),
        _kind("front_cut", "front"),
        _kind("front_stall", "front", 1.0, 8.0),
        _kind("front_lossy", "front", 3.0, 10.0),
        _kind("everything_kill", "server daemon link", 0.0, 2.0),
    )
}

PROFILES: Final = {
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
    "all": list(KINDS),
}
