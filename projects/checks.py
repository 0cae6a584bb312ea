"""System checks that refuse a configuration that cannot work, each with a hint."""

from typing import Any, Final

from cryptography.fernet import Fernet
from django.core import checks

from projects.conf import conf
from projects.storage import encoding as database_encoding
from projects.storage import room, unfinished

REVOCATION_LOOK_SECONDS = 2.0
OURS: Final = "holdline"
"""The tag of these checks; ``config.start_checks`` runs them before a server serves."""


def check_encryption_keys(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse an encryption key that is not a Fernet key."""
    try:
        for key in conf.encryption_keys:
            Fernet(key)
    except ValueError:
        hint = (
            'Make one: python -c "from cryptography.fernet import Fernet; '
            'print(Fernet.generate_key().decode())"'
        )
        return [
            checks.Error(
                "HOLDLINE_ENCRYPTION_KEYS holds something that is not a Fernet key.",
                hint=hint,
                id="holdline.E001",
            )
        ]
    return []


def check_liveness(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse times that would declare live connections dead.

    A heartbeat must come before its connection counts as dead, and that before the lease expires.
    """
    if conf.heartbeat_seconds < conf.dead_after_seconds <= conf.lease_seconds:
        return []
    hint = (
        "Keep HOLDLINE_HEARTBEAT_SECONDS < HOLDLINE_DEAD_AFTER_SECONDS <= HOLDLINE_LEASE_SECONDS."
    )
    return [
        checks.Error(
            "Heartbeat, dead-after and lease times do not fit together.",
            hint=hint,
            id="holdline.E002",
        )
    ]


def check_waits(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of waits that are longer than those of MCP clients, which give up after 60 s."""
    if conf.max_wait_seconds <= 55:
        return []
    return [
        checks.Warning(
            "Calls may wait longer than clients do.",
            hint="Set HOLDLINE_MAX_WAIT_SECONDS to 30.",
            id="holdline.W001",
        )
    ]


def check_revocations(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warn if a revocation whose doorbell is lost could take more than 5 s to close connections.

    The time covers one look of the reconciler, its query, and a close that the peer ignores.
    """
    if conf.safety_net_seconds <= REVOCATION_LOOK_SECONDS:
        return []
    hint = f"Keep HOLDLINE_SAFETY_NET_SECONDS at {REVOCATION_LOOK_SECONDS:g} or below."
    return [
        checks.Warning(
            "Connections of what was revoked may stay open for more than 5 s.",
            hint=hint,
            id="holdline.W002",
        )
    ]


def check_database_encoding(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a database that cannot store every character, as program output may be any text."""
    wrong = database_encoding.problem_at_start()
    return [checks.Error(wrong, hint=database_encoding.HINT, id="holdline.E003")] if wrong else []


def check_restore(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Refuse a database whose restore was cut short: nothing in it is suspended yet."""
    wrong = unfinished.problem()
    hint = "Run manage.py restore once more; it starts anew."
    return [checks.Error(wrong, hint=hint, id="holdline.E004")] if wrong else []


def check_room(**_kwargs: Any) -> list[checks.CheckMessage]:
    """Warn of a disk that is about to be full: a call that cannot be stored is refused."""
    wrong = room.problem()
    hint = "Make room, or shorten the times of retention (docs/howto/operate.md)."
    return [checks.Warning(wrong, hint=hint, id="holdline.W003")] if wrong else []


def begin() -> None:
    """Register the checks, and refuse wrong databases that are connected later, too."""
    for check in (
        check_encryption_keys,
        check_liveness,
        check_waits,
        check_revocations,
        check_database_encoding,
        check_restore,
        check_room,
    ):
        checks.register(check, OURS)
    database_encoding.refuse_other_encodings()
