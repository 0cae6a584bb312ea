"""A host in the words of its pages."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from console.parts.words import age, ago
from projects.admin.parts.display import visible
from projects.models import Controller
from projects.reads.hosts import is_outdated
from projects.sessions.selectors import is_online


@dataclass(frozen=True, slots=True)
class HostInWords:
    """A host as a page shows it. ``row`` is its row; texts are visible throughout."""

    row: Controller
    id: UUID
    name: str
    project: str
    state: str
    is_online: bool
    seen: str
    active: int
    version: str
    is_outdated: bool
    credential_age: str
    echo: str
    policy: str
    is_stopped: bool
    alarm: str
    labels: tuple[str, ...]


def in_words(host: Any) -> HostInWords:
    """Describes a host that has the facts of ``with_facts``."""
    online = host.revoked_at is None and is_online(host.lease_expires_at)
    version = host.client_version
    return HostInWords(
        row=host,
        id=host.pk,
        name=visible(host.name),
        project=host.project.name,
        state=_state(host, is_now_online=online),
        is_online=online,
        seen=_seen(host.lease_expires_at, is_now_online=online),
        active=host.active_count,
        version=visible(version) or "not known",
        is_outdated=is_outdated(version),
        credential_age=_age(host.credential_at),
        echo=_echo(host),
        policy=visible(host.policy_digest) or ("no file" if host.echoed_at else "not known"),
        is_stopped=host.is_stopped,
        alarm=visible(host.alarm) if host.alarmed_at else "",
        labels=tuple(host.labels.split()),
    )


def _state(host: Controller, *, is_now_online: bool) -> str:
    if host.revoked_at is not None:
        return "revoked"
    if host.awaits_approval_since is not None:
        return "waits for approval"
    return "online" if is_now_online else "offline"


def _seen(lease_expires_at: datetime | None, *, is_now_online: bool) -> str:
    if is_now_online:
        return "now"
    return ago(lease_expires_at) if lease_expires_at else "never"


def _echo(host: Controller) -> str:
    if host.echo_ms is None or host.echoed_at is None:
        return "not known"
    return f"{host.echo_ms:.0f} ms, measured {ago(host.echoed_at)}"


def _age(made_at: datetime | None) -> str:
    return age(made_at) if made_at else "no valid credential"
