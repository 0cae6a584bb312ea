"""Who is calling: API tokens of callers (``hl_<key id>_<secret>``) and credentials of controllers (``ctl_<key id>_<secret>``).

The database holds a SHA-256 of the secret, which has 256 random bits; a token is shown once, when it is made. A token is
looked up on every call, so that a revocation holds from the next call on.
"""

import hmac
import json
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from projects.audit_log import audit
from projects.database import in_database
from projects.dispatch import as_time
from projects.errors import ScopeMissing, Unauthenticated
from projects.models import ApiToken, Controller, ControllerCredential, Project

ADMIN_SCOPE: Final = "admin:*"
SCOPES: Final = (
    "session:read",
    "session:start",
    "session:input",
    "session:kill",
    "shell:any",
    "secret:use",
    "monitor:read",
    "monitor:delete",
    ADMIN_SCOPE,
)
# What an agent needs to run programs and talk to them.
AGENT_SCOPES: Final = (
    "session:read",
    "session:start",
    "session:input",
    "session:kill",
    "shell:any",
    "secret:use",
    "monitor:read",
    "monitor:delete",
)

API_PREFIX: Final = "hl"
CONTROLLER_PREFIX: Final = "ctl"
_TOKEN: Final = re.compile(r"(hl|ctl)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
_FIND_BY_KEY_ID: Final = (
    "SELECT digest, expires_at, revoked_at, last_used_at, id, project_id, name, scopes, toolsets FROM projects_apitoken WHERE key_id = %s"
)
# ``last_used_at`` is for people; a write per call would cost more than the lookup.
_LAST_USED_GRAIN: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Caller:
    """A verified caller: the one project it may touch and what it may do there. ``label`` names it in audit rows.

    ``toolsets``: the sets of tools its token is narrowed to; empty for none.
    """

    project_id: UUID
    label: str
    scopes: frozenset[str]
    token_id: UUID | None = None
    toolsets: tuple[str, ...] = ()

    def may(self, scope: str) -> bool:
        """Whether the caller has ``scope``."""
        return scope in self.scopes or ADMIN_SCOPE in self.scopes

    def require(self, scope: str) -> None:
        """Raises ScopeMissing unless the caller has ``scope``."""
        if not self.may(scope):
            raise ScopeMissing(scope)


async def authenticate_api_token(header: str | None) -> Caller:
    """The caller behind an ``Authorization`` header. Raises Unauthenticated, or StorageUnavailable: nobody gets in unchecked."""
    key_id, secret = _parse(header, API_PREFIX)
    return await in_database(_find_caller, key_id, secret)


async def authenticate_controller(header: str | None) -> tuple[UUID, UUID]:
    """(controller id, credential id) behind an ``Authorization`` header. Raises Unauthenticated or StorageUnavailable."""
    key_id, secret = _parse(header, CONTROLLER_PREFIX)
    return await in_database(_find_controller, key_id, secret)


def is_controller_credential_valid(credential_id: UUID) -> bool:
    """Still neither revoked nor expired, nor its controller: asked at every heartbeat of an open connection."""
    row = ControllerCredential.objects.filter(id=credential_id).values_list("expires_at", "revoked_at", "controller__revoked_at").first()
    return row is not None and row[2] is None and _is_valid_now(row[0], row[1])


@transaction.atomic
def api_token_create(
    *,
    project: Project,
    name: str,
    scopes: Sequence[str] = AGENT_SCOPES,
    toolsets: Sequence[str] = (),
    expires_at: datetime | None = None,
    actor: str = "operator",
) -> tuple[ApiToken, str]:
    """A new token of ``project`` and its text, which is shown this once. Raises ValueError for an unknown scope."""
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise ValueError(f"unknown scopes {', '.join(unknown)}; known: {', '.join(SCOPES)}")
    key_id, secret, token = _make(API_PREFIX)
    row = ApiToken.objects.create(
        project=project,
        name=name,
        scopes=sorted(set(scopes)),
        toolsets=sorted(set(toolsets)),
        key_id=key_id,
        digest=_digest(secret),
        expires_at=expires_at,
    )
    audit(actor, "api_token.create", (project.id, None, None), {"key_id": key_id, "name": name})
    return row, token


@transaction.atomic
def controller_create(*, project: Project, name: str, actor: str = "operator") -> Controller:
    """Enrols a host under ``name``, unique in its project (IntegrityError otherwise)."""
    controller = Controller.objects.create(project=project, name=name)
    audit(actor, "controller.create", (project.id, controller.id, None), {"name": name})
    return controller


@transaction.atomic
def controller_credential_create(
    *, controller: Controller, expires_at: datetime | None = None, actor: str = "operator"
) -> tuple[ControllerCredential, str]:
    """A new credential of ``controller`` and its text, which is shown this once. Older ones stay valid until revoked."""
    key_id, secret, token = _make(CONTROLLER_PREFIX)
    row = ControllerCredential.objects.create(controller=controller, key_id=key_id, digest=_digest(secret), expires_at=expires_at)
    audit(actor, "controller_credential.create", (controller.project_id, controller.id, None), {"key_id": key_id})
    return row, token


@transaction.atomic
def api_token_revoke(*, token: ApiToken, actor: str) -> None:
    """The token's next call is refused. Revoking twice changes nothing."""
    if ApiToken.objects.filter(id=token.id, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        audit(actor, "api_token.revoke", (token.project_id, None, None), {"key_id": token.key_id, "name": token.name})


@transaction.atomic
def controller_credential_revoke(*, credential: ControllerCredential, actor: str) -> None:
    """Its open connection is closed at the next heartbeat; at once if the controller's doorbell is rung afterwards."""
    if ControllerCredential.objects.filter(id=credential.id, revoked_at__isnull=True).update(revoked_at=timezone.now()):
        about = (credential.controller.project_id, credential.controller_id, None)
        audit(actor, "controller_credential.revoke", about, {"key_id": credential.key_id})


def _make(prefix: str) -> tuple[str, str, str]:
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return key_id, secret, f"{prefix}_{key_id}_{secret}"


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()


def _parse(header: str | None, prefix: str) -> tuple[str, str]:
    scheme, _, token = (header or "").partition(" ")
    match = _TOKEN.fullmatch(token.strip())
    if scheme.lower() != "bearer" or match is None or match[1] != prefix:
        raise Unauthenticated
    return match[2], match[3]


def _find_caller(key_id: str, secret: str) -> Caller:
    # Once per call of a tool: the ORM takes ten times as long for the same statement.
    with connection.cursor() as cursor:
        cursor.execute(_FIND_BY_KEY_ID, [key_id])
        row = cursor.fetchone()
    digest, expires_at, revoked_at, last_used_at = (row[0], *map(as_time, row[1:4])) if row is not None else ("", None, None, None)
    _verify(digest, secret, expires_at, revoked_at)
    token_id, project_id, name, scopes, toolsets = UUID(str(row[4])), UUID(str(row[5])), row[6], json.loads(row[7]), json.loads(row[8])
    _note_use(lambda: ApiToken.objects.filter(id=token_id), last_used_at)
    return Caller(project_id=project_id, label=f"token:{name}", scopes=frozenset(scopes), token_id=token_id, toolsets=tuple(toolsets))


def _find_controller(key_id: str, secret: str) -> tuple[UUID, UUID]:
    rows = ControllerCredential.objects.filter(key_id=key_id, controller__revoked_at__isnull=True)
    row = rows.first()
    _verify(row.digest if row else "", secret, row.expires_at if row else None, row.revoked_at if row else None)
    assert row is not None  # noqa: S101 - nothing has an empty digest
    _note_use(lambda: rows, row.last_used_at)
    return row.controller_id, row.id


def _verify(digest: str, secret: str, expires_at: datetime | None, revoked_at: datetime | None) -> None:
    """Raises Unauthenticated, whatever was wrong; ``digest`` is empty where no such token exists."""
    is_secret_right = hmac.compare_digest(digest, _digest(secret))
    if not is_secret_right or not _is_valid_now(expires_at, revoked_at):
        raise Unauthenticated


def _note_use(rows: "Callable[[], QuerySet[Any]]", last_used_at: datetime | None) -> None:
    """``rows`` is called only if there is something to note: making a query costs more than the whole lookup."""
    now = timezone.now()
    if last_used_at is None or now - last_used_at > _LAST_USED_GRAIN:
        rows().update(last_used_at=now)


def _is_valid_now(expires_at: datetime | None, revoked_at: datetime | None) -> bool:
    return revoked_at is None and (expires_at is None or expires_at > timezone.now())
