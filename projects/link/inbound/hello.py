"""HELLO: accept or refuse a new connection, fence the one before it, reconcile the sessions."""

import json
import logging
from collections.abc import Mapping
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple
from uuid import UUID

from django.db import connection, transaction

from controller_client.protocol.limits import (
    CONNECTION_WINDOW_BYTES,
    MAX_LOG_ROOT_CHARS,
    MAX_LOG_ROOTS,
    MIN_CLIENT_VERSION,
    SESSION_WINDOW_BYTES,
    SUPPORTED_VERSIONS,
)
from controller_client.protocol.messages import Hello, Welcome
from projects.audit.log import audit
from projects.conf import conf
from projects.errors.server import StorageUnavailable
from projects.link.inbound import reconciling
from projects.link.inbound.leases import is_past, lease_end
from projects.link.inbound.refusals import (
    AwaitsApproval,
    Revoked,
    SecondInstance,
    StillConnected,
    VersionUnsupported,
)
from projects.link.inbound.restored import EPOCHS_SKIPPED, higher
from projects.link.inbound.stored_text import stored_list, stored_text
from projects.link.inbound.twins import alarm_raise
from projects.models import Controller, ControllerCommand
from projects.sessions import lifetimes
from projects.sessions.selectors import is_online
from projects.storage import clock
from projects.storage.access import in_database
from projects.storage.columns import as_parameter, time_as_parameter
from projects.storage.rows import execute, fetch_row

logger = logging.getLogger(__name__)

MAX_CAPABILITIES: Final = 64

# After a restart of the server all its hosts say HELLO within a minute, so these statements are
# written by hand and not built by the ORM.
_FIND: Final = """
SELECT id, project_id, name, instance_id, boot_id, previous_boot_id, lock_id, lease_expires_at,
    awaits_approval_since, epoch, last_command_seq
FROM projects_controller WHERE id = %s AND revoked_at IS NULL
"""
# Read after the controller is locked, so that a revocation which held the lock is seen.
_CREDENTIAL: Final = (
    "SELECT instance_id, revoked_at, expires_at FROM projects_controllercredential WHERE id = %s"
)
_CLAIM: Final = (
    "UPDATE projects_controllercredential SET instance_id = %s WHERE id = %s AND instance_id = ''"
)
_TAKE_OVER: Final = """
UPDATE projects_controller
SET epoch = %s, last_command_seq = %s, instance_id = %s, boot_id = %s, previous_boot_id = %s,
    lock_id = %s, connected_credential_id = %s, lease_expires_at = %s, client_version = %s, os = %s,
    platform = %s, hostname = %s, capabilities = %s, log_roots = %s
WHERE id = %s
"""


class _Controller(NamedTuple):
    """A controller as it was before the HELLO, in the order of ``_FIND``."""

    id: UUID
    project_id: UUID
    name: str
    instance_id: str
    boot_id: str
    previous_boot_id: str
    lock_id: str
    lease_expires_at: datetime | None
    awaits_approval_since: datetime | None
    epoch: int
    last_command_seq: int


class _Credential(NamedTuple):
    """A credential, in the order of ``_CREDENTIAL``. ``owner`` is the instance that used it first.

    ``owner`` is empty for a credential that no daemon has used.
    """

    owner: str
    revoked_at: datetime | None
    expires_at: datetime | None


def hello(
    controller_id: UUID, message: Hello, credential_id: UUID | None = None
) -> tuple[Welcome, reconciling.Missing]:
    """Accept a connection: its WELCOME, and the sessions that its HELLO did not name.

    The connection has the ``epoch`` of its WELCOME. Raises VersionUnsupported, Revoked or
    AwaitsApproval. Raises SecondInstance while the lease of another daemon runs, and for a copy of
    that daemon's credential; StillConnected while the lease of another boot runs.
    """
    if not set(message.versions) & set(SUPPORTED_VERSIONS):
        raise VersionUnsupported(SUPPORTED_VERSIONS)
    with transaction.atomic():
        controller = _locked_controller(controller_id)
        owner = "" if credential_id is None else _credential_owner(credential_id)
        if controller.awaits_approval_since is not None:
            raise AwaitsApproval
        alarm = _suspicion(controller, owner, message)
        if alarm:
            alarm_raise(controller.id, stored_text(message.hostname, 255), alarm)
        elif is_online(controller.lease_expires_at) and _is_rebooted(controller, message):
            raise StillConnected
        else:
            if credential_id is not None and not owner:
                _claim(credential_id, message)
            epoch = _take_over(controller, message, credential_id)
            if lifetimes.CAPABILITY not in message.capabilities:
                _withdraw_pauses(controller)
            missing, directives = reconciling.reconcile(_host(controller, message), message)
    # Outside of the transaction: the refusal must not roll its audit row back.
    if alarm:
        raise SecondInstance(alarm)
    return (
        Welcome(
            epoch=epoch,
            heartbeat_seconds=conf.heartbeat_seconds,
            lease_seconds=conf.lease_seconds,
            session_window_bytes=SESSION_WINDOW_BYTES,
            connection_window_bytes=CONNECTION_WINDOW_BYTES,
            sessions=directives,
            min_client_version=MIN_CLIENT_VERSION,
        ),
        missing,
    )


def _locked_controller(controller_id: UUID) -> _Controller:
    """The controller, whose row is locked. Raises Revoked."""
    lock = " FOR NO KEY UPDATE" if connection.features.has_select_for_update else ""
    controller = fetch_row(_Controller, _FIND + lock, [as_parameter(controller_id)])
    if controller is None:
        raise Revoked
    return controller


def _credential_owner(credential_id: UUID) -> str:
    """The instance that used the credential first; empty if none did. Raises Revoked."""
    credential = fetch_row(_Credential, _CREDENTIAL, [as_parameter(credential_id)])
    if credential is None or credential.revoked_at is not None or is_past(credential.expires_at):
        raise Revoked
    return credential.owner


async def violation_recorded(controller_id: UUID, code: str) -> None:
    """Put it on record that a peer broke the protocol, or log it while the database is away."""
    try:
        await in_database(_record_violation, controller_id, code)
    except StorageUnavailable:
        logger.error("a protocol violation of controller %s could not be recorded", controller_id)


def _record_violation(controller_id: UUID, code: str) -> None:
    controller = Controller.objects.filter(id=controller_id).first()
    if controller is not None:
        _audit(controller, "controller.protocol_violation", {"code": code})


def _suspicion(controller: _Controller, owner: str, message: Hello) -> str:
    """The reason to take the credential for a copy; empty if there is none.

    A daemon that comes back is the same instance.
    """
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    is_live = is_online(controller.lease_expires_at)
    if is_live and controller.instance_id not in ("", instance_id):
        return "another daemon is connected as this controller; its lease must run out first"
    if owner not in ("", instance_id):
        return (
            "this credential belongs to another daemon, which showed it first. If it is the same "
            "host with another state directory, start"
            " it on the first one (--state-dir); else enrol this host with a code of its own"
        )
    if boot_id == controller.previous_boot_id and boot_id not in ("", controller.boot_id):
        return (
            "a host does not return to a boot from before its last one: this is a copy of "
            "another machine, or that one is"
        )
    return ""


def _is_rebooted(controller: _Controller, message: Hello) -> bool:
    return controller.boot_id not in ("", stored_text(message.boot_id, 64))


def _claim(credential_id: UUID, message: Hello) -> None:
    """Make the daemon the owner of a credential that no other daemon has used."""
    with connection.cursor() as cursor:
        instance_id = stored_text(message.instance_id, 64)
        cursor.execute(_CLAIM, [instance_id, as_parameter(credential_id)])


def _take_over(controller: _Controller, message: Hello, credential_id: UUID | None) -> int:
    """Give the controller to this connection, under a new epoch, which is returned."""
    instance_id, boot_id = stored_text(message.instance_id, 64), stored_text(message.boot_id, 64)
    epoch, last_seq = _numbers(controller, message)
    values = [
        epoch,
        last_seq,
        instance_id,
        boot_id,
        controller.previous_boot_id if boot_id == controller.boot_id else controller.boot_id,
        stored_text(message.lock_id, 64),
        None if credential_id is None else as_parameter(credential_id),
        time_as_parameter(lease_end()),
        stored_text(message.client_version, 32),
        stored_text(message.os, 32),
        stored_text(message.platform, 128),
        stored_text(message.hostname, 255),
        json.dumps(stored_list(message.capabilities, MAX_CAPABILITIES, 64)),
        None if message.log_roots is None else json.dumps(_log_roots(message.log_roots)),
        as_parameter(controller.id),
    ]
    execute(_TAKE_OVER, values)
    _audit(controller, "controller.connect", {"epoch": epoch})
    return epoch


def _log_roots(told: list[str]) -> list[str]:
    """The roots that can be stored unchanged. A path that was cut would name another directory."""
    fit = (
        root
        for root in told
        if root.startswith("/")
        and stored_text(root, MAX_LOG_ROOT_CHARS) == root
        and root.isprintable()
    )
    return list(islice(fit, MAX_LOG_ROOTS))


def _numbers(controller: _Controller, message: Hello) -> tuple[int, int]:
    """(epoch of the connection, last number of the outbox).

    Both are at least as high as the host has ever seen them, even in a database that was replaced.
    """
    last_seq = higher(controller.last_command_seq, message.last_cmd_seq)
    had = higher(controller.epoch, message.epoch)
    if _is_behind(controller, message):
        seen = {
            "epoch": [controller.epoch, message.epoch],
            "commands": [controller.last_command_seq, message.last_cmd_seq],
        }
        _audit(controller, "controller.restored", {"server_and_host": seen})
        # An old daemon does not say which epochs it had, so a wide gap has to cover them.
        had = max(had, controller.epoch + EPOCHS_SKIPPED)
    return had + 1, last_seq


def _is_behind(controller: _Controller, message: Hello) -> bool:
    """True if the host has seen more of this server than the database knows.

    Then the database was restored, or is a replica that was behind.
    """
    return message.last_cmd_seq > controller.last_command_seq or message.epoch > controller.epoch


def _host(controller: _Controller, message: Hello) -> reconciling.Host:
    return reconciling.Host(
        id=controller.id,
        project_id=controller.project_id,
        name=controller.name,
        is_rebooted=_is_rebooted(controller, message),
        is_another=controller.instance_id not in ("", stored_text(message.instance_id, 64)),
        is_ahead=_is_behind(controller, message),
        had_lock=controller.lock_id,
        lock=stored_text(message.lock_id, 64),
    )


def _withdraw_pauses(controller: _Controller) -> None:
    """Settle the pauses in the outbox: this daemon is too old to decode them."""
    pauses = ControllerCommand.objects.filter(
        controller_id=controller.id, type=lifetimes.COMMAND_TYPE, settled_at__isnull=True
    )
    pauses.update(settled_at=clock.now(), body=None, failure_code="HOST_TOO_OLD")


def _audit(controller: Controller | _Controller, action: str, detail: Mapping[str, object]) -> None:
    about = (controller.project_id, controller.id, None)
    audit(f"controller:{controller.name}", action, about, detail)
