"""Hosts as operators look for them: by their state, their version and their labels."""

from typing import Final

from django.db.models import F, Q, QuerySet, Value
from django.db.models.functions import Concat, StrIndex

from controller_client import __version__
from projects.models import Controller
from projects.sessions.selectors import is_online
from projects.storage import clock

STATES: Final = ("online", "offline", "alarm", "waits", "outdated", "revoked")


def in_state(rows: QuerySet[Controller], state: str) -> QuerySet[Controller]:
    """The hosts in one state. Revoked hosts are found only by whoever asks for them."""
    if state == "revoked":
        return rows.filter(revoked_at__isnull=False)
    rows = rows.filter(revoked_at__isnull=True)
    running = Q(lease_expires_at__gt=clock.host_lease_now())
    is_of_this_version = Q(client_version=__version__) | Q(
        client_version__startswith=f"{__version__}+"
    )
    conditions = {
        "online": running,
        "offline": ~running,
        "alarm": Q(alarmed_at__isnull=False),
        "waits": Q(awaits_approval_since__isnull=False),
        "outdated": ~is_of_this_version & ~Q(client_version=""),
    }
    return rows.filter(conditions.get(state, Q()))


def with_label(rows: QuerySet[Controller], label: str) -> QuerySet[Controller]:
    """The hosts that have this label, in these letters: SQLite's LIKE knows no case."""
    if label.split() != [label]:
        return rows.none()
    spaced = Concat(Value(" "), F("labels"), Value(" "))
    return rows.alias(place=StrIndex(spaced, Value(f" {label} "))).filter(place__gt=0)


def is_outdated(version: str) -> bool:
    """Tells whether a daemon of this version is not of this server's."""
    return bool(version) and version.partition("+")[0] != __version__


def state_of(host: Controller) -> str:
    """The state of a host in one word."""
    if host.revoked_at is not None:
        return "revoked"
    if host.awaits_approval_since is not None:
        return "waits"
    return "online" if is_online(host.lease_expires_at) else "offline"
