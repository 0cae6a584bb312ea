"""System checks: a configuration that cannot work is refused at start, with a hint."""

from typing import Any

from cryptography.fernet import Fernet
from django.core import checks

from projects.conf import conf

REVOCATION_LOOK_SECONDS = 2.0


@checks.register()
def check_encryption_keys(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Each key must be a Fernet key."""
    try:
        for key in conf.encryption_keys:
            Fernet(key)
    except ValueError:
        hint = 'Make one: python -c "from cryptography.fernet import Fernet; print(Fernet.generate_key().decode())"'
        return [checks.Error("HOLDLINE_ENCRYPTION_KEYS holds something that is not a Fernet key.", hint=hint, id="holdline.E001")]
    return []


@checks.register()
def check_liveness(**_kwargs: Any) -> list[checks.CheckMessage]:
    """A heartbeat must be able to arrive before the connection counts as dead, and death before the lease runs out."""
    if conf.heartbeat_seconds < conf.dead_after_seconds <= conf.lease_seconds:
        return []
    hint = "Keep HOLDLINE_HEARTBEAT_SECONDS < HOLDLINE_DEAD_AFTER_SECONDS <= HOLDLINE_LEASE_SECONDS."
    return [checks.Error("Heartbeat, dead-after and lease times do not fit together.", hint=hint, id="holdline.E002")]


@checks.register()
def check_waits(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Clients of MCP give up after 60 s."""
    if conf.max_wait_seconds <= 55:
        return []
    return [checks.Warning("Calls may wait longer than clients do.", hint="Set HOLDLINE_MAX_WAIT_SECONDS to 30.", id="holdline.W001")]


@checks.register()
def check_revocations(**_kwargs: Any) -> list[checks.CheckMessage]:
    """A revocation closes connections within 5 s without any doorbell: a look, what it takes, and a close that nobody answers."""
    if conf.safety_net_seconds <= REVOCATION_LOOK_SECONDS:
        return []
    hint = f"Keep HOLDLINE_SAFETY_NET_SECONDS at {REVOCATION_LOOK_SECONDS:g} or below."
    return [checks.Warning("Connections of what was revoked may stay open for more than 5 s.", hint=hint, id="holdline.W002")]
