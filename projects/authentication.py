"""Who is calling: API tokens of callers (``hl_<key id>_<secret>``) and credentials of controllers (``ctl_<key id>_<secret>``).

The database holds a SHA-256 of the secret, which has 256 random bits; a token is shown once, when it is made. A token is
looked up on every call, so that a revocation holds from the next call on. Who shows the wrong secret too often is not let in with the right
one either, for a while: counted per token and address.
"""

import hmac
import json
import re
import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any, Final, TypeVar
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import connection, transaction

from projects import clock
from projects.account_errors import CredentialLimitReached, RateLimited
from projects.audit_log import audit
from projects.conf import conf
from projects.database import in_database
from projects.dispatch import as_parameter, as_time, time_as_parameter
from projects.errors import ScopeMissing, Unauthenticated
from projects.models import ApiToken, Controller, ControllerCredential, Project
from projects.rate_limits import rate_check, rate_take

T = TypeVar("T")

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
_TOKEN: Final = re.compile(r"(hl|ctl|enr)_([0-9a-f]{16})_([A-Za-z0-9_-]{43})")
ENROLMENT_PREFIX: Final = "enr"
# A token that a user made is good while that user is active and belongs to the project.
_OWNER_STANDS: Final = """
t.owner_id IS NULL OR EXISTS (
    SELECT 1 FROM auth_user u WHERE u.id = t.owner_id AND u.is_active AND (u.is_superuser OR EXISTS (
        SELECT 1 FROM projects_project_members m WHERE m.project_id = t.project_id AND m.user_id = u.id)))
"""
_FIND_BY_KEY_ID: Final = f"""
SELECT t.id, t.digest, t.expires_at, t.revoked_at, t.last_used_at, {_OWNER_STANDS}, t.project_id, t.name, t.scopes, t.toolsets,
       t.starts_per_minute, t.input_bytes_per_minute
FROM projects_apitoken t WHERE t.key_id = %s
"""  # noqa: S608 - constants only
_FIND_CONTROLLER: Final = """
SELECT k.id, k.digest, k.expires_at, k.revoked_at, k.last_used_at, c.revoked_at IS NULL, k.controller_id
FROM projects_controllercredential k JOIN projects_controller c ON c.id = k.controller_id WHERE k.key_id = %s
"""
_NOTE_USE: Final = "UPDATE {table} SET last_used_at = %s WHERE id = %s"
_STANDS: Final = f"SELECT t.expires_at, t.revoked_at, {_OWNER_STANDS} FROM projects_apitoken t WHERE t.id = %s"  # noqa: S608
_FAILURES: Final = "failed logins"
_MAX_BLOCKED: Final = 4096
MAX_ACTIVE_CREDENTIALS: Final = 2
"""Of one controller: the one in use, and the one that takes its place."""
# ``last_used_at`` is for people; a write per call would cost more than the lookup.
_LAST_USED_GRAIN: Final = timedelta(minutes=1)


@dataclass(frozen=True)
class Caller:
    """A verified caller: the one project it may touch and what it may do there. ``label`` names it in audit rows.

    ``toolsets``: the sets of tools its token is narrowed to; empty for none. Rates of None: those of the settings.
    """

    project_id: UUID
    label: str
    scopes: frozenset[str]
    token_id: UUID | None = None
    toolsets: tuple[str, ...] = ()
    starts_per_minute: int | None = None
    input_bytes_per_minute: int | None = None

    def may(self, scope: str) -> bool:
        """Whether the caller has ``scope``."""
        return scope in self.scopes or ADMIN_SCOPE in self.scopes

    def require(self, scope: str) -> None:
        """Raises ScopeMissing unless the caller has ``scope``."""
        if not self.may(scope):
            raise ScopeMissing(scope)


async def authenticate_api_token(header: str | None, peer: str = "") -> Caller:
    """The caller behind an ``Authorization`` header, shown from the address ``peer``.

    Raises Unauthenticated, RateLimited, or StorageUnavailable: nobody gets in unchecked.
    """
    return await _throttled(_find_caller, header, API_PREFIX, peer)


async def authenticate_controller(header: str | None, peer: str = "") -> tuple[UUID, UUID]:
    """(controller id, credential id) behind an ``Authorization`` header. Raises as ``authenticate_api_token`` does."""
    return await _throttled(_find_controller, header, CONTROLLER_PREFIX, peer)


def check_caller(caller: Caller) -> None:
    """Raises Unauthenticated if the caller's token is no longer good: asked while one of its calls waits."""
    if caller.token_id is None:
        return
    with connection.cursor() as cursor:
        cursor.execute(_STANDS, [as_parameter(caller.token_id)])
        row = cursor.fetchone()
    if row is None or not row[2] or not _is_valid_now(as_time(row[0]), as_time(row[1])):
        raise Unauthenticated


@transaction.atomic
def api_token_create(
    *,
    project: Project,
    name: str,
    scopes: Sequence[str] = AGENT_SCOPES,
    toolsets: Sequence[str] = (),
    expires_at: datetime | None = None,
    starts_per_minute: int | None = None,
    input_bytes_per_minute: int | None = None,
    owner: AbstractBaseUser | None = None,
    actor: str = "operator",
) -> tuple[ApiToken, str]:
    """A new token of ``project`` and its text, which is shown this once. Raises ValueError for an unknown scope.

    ``owner``: the user it is bound to; it is good for as long as that user is active and in the project.
    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise ValueError(f"unknown scopes {', '.join(unknown)}; known: {', '.join(SCOPES)}")
    key_id, secret, token = make_token(API_PREFIX)
    row = ApiToken.objects.create(
        project=project,
        name=name,
        scopes=sorted(set(scopes)),
        toolsets=sorted(set(toolsets)),
        key_id=key_id,
        digest=digest_of(secret),
        expires_at=expires_at,
        starts_per_minute=starts_per_minute,
        input_bytes_per_minute=input_bytes_per_minute,
        owner_id=None if owner is None else owner.pk,
    )
    audit(actor, "api_token.create", (project.id, None, None), {"key_id": key_id, "name": name, "scopes": row.scopes})
    return row, token


@transaction.atomic
def controller_create(*, project: Project, name: str, actor: str = "operator") -> Controller:
    """Enrols a host under ``name``, unique in its project (IntegrityError otherwise). Raises ValidationError for what is no name."""
    controller = Controller(project=project, name=name)
    controller.clean_fields()
    controller.save(force_insert=True)
    audit(actor, "controller.create", (project.id, controller.id, None), {"name": name})
    return controller


@transaction.atomic
def controller_credential_create(
    *, controller: Controller, expires_at: datetime | None = None, instance_id: str = "", actor: str = "operator"
) -> tuple[ControllerCredential, str]:
    """A new credential of ``controller`` and its text, which is shown this once. Older ones stay valid until revoked.

    ``instance_id``: the daemon it is for, if that is known; otherwise it is the first one that shows it. Raises CredentialLimitReached.
    """
    # Locked: two at once must not both find room.
    Controller.objects.select_for_update().filter(id=controller.id).first()
    if len(active_credentials(controller.id)) >= MAX_ACTIVE_CREDENTIALS:
        raise CredentialLimitReached(MAX_ACTIVE_CREDENTIALS)
    key_id, secret, token = make_token(CONTROLLER_PREFIX)
    row = ControllerCredential.objects.create(
        controller=controller, key_id=key_id, digest=digest_of(secret), expires_at=expires_at, instance_id=instance_id
    )
    audit(actor, "controller_credential.create", (controller.project_id, controller.id, None), {"key_id": key_id})
    return row, token


def active_credentials(controller_id: UUID) -> list[ControllerCredential]:
    """The controller's credentials that are neither revoked nor expired, oldest first."""
    rows = ControllerCredential.objects.filter(controller_id=controller_id, revoked_at__isnull=True).order_by("created_at", "id")
    return [row for row in rows if _is_valid_now(row.expires_at, None)]


def make_token(prefix: str) -> tuple[str, str, str]:
    """(key id, secret, the whole text) of something to be shown once."""
    key_id, secret = secrets.token_hex(8), secrets.token_urlsafe(32)
    return key_id, secret, f"{prefix}_{key_id}_{secret}"


def digest_of(secret: str) -> str:
    """What is stored of a secret."""
    return sha256(secret.encode()).hexdigest()


def parse_token(token: str, prefix: str) -> tuple[str, str]:
    """(key id, secret) of a token's text. Raises Unauthenticated."""
    match = _TOKEN.fullmatch(token.strip())
    if match is None or match[1] != prefix:
        raise Unauthenticated
    return match[2], match[3]


def _parse(header: str | None, prefix: str) -> tuple[str, str]:
    scheme, _, token = (header or "").partition(" ")
    if scheme.lower() != "bearer":
        raise Unauthenticated
    return parse_token(token, prefix)


# ---- throttling --------------------------------------------------------------------------------------------------------

# Meters that were full, until when: who goes on guessing costs this process no statement.
_blocked: dict[str, float] = {}


class _UnknownKeyError(Unauthenticated):
    """There is no such key id; all of them share one meter per address."""


async def _throttled(find: Callable[[str, str, str], T], header: str | None, prefix: str, peer: str) -> T:
    key_id, secret = _parse(header, prefix)
    meter = f"login {peer} {key_id}"
    if (left := _blocked.get(meter, 0.0) - time.monotonic()) > 0:
        raise RateLimited(_FAILURES, left)
    try:
        return await in_database(find, key_id, secret, meter)
    except _UnknownKeyError:
        await in_database(_note_failure, f"login {peer}")
        raise Unauthenticated from None
    except Unauthenticated:
        await in_database(_note_failure, meter)
        raise
    except RateLimited as error:
        if len(_blocked) >= _MAX_BLOCKED:
            _blocked.clear()
        _blocked[meter] = time.monotonic() + error.retry_after_seconds
        raise


def _note_failure(meter: str) -> None:
    rate_take(meter, 1, conf.login_failures_per_minute, _FAILURES)


# ---- lookups -----------------------------------------------------------------------------------------------------------


def _find_caller(key_id: str, secret: str, meter: str) -> Caller:
    rate_check(meter, conf.login_failures_per_minute, _FAILURES)
    row = _found(_FIND_BY_KEY_ID, key_id)
    token_id = _verified(row, secret, "projects_apitoken")
    return Caller(
        project_id=UUID(str(row[6])),
        label=f"token:{row[7]}",
        scopes=frozenset(json.loads(row[8])),
        token_id=token_id,
        toolsets=tuple(json.loads(row[9])),
        starts_per_minute=row[10],
        input_bytes_per_minute=row[11],
    )


def _find_controller(key_id: str, secret: str, meter: str) -> tuple[UUID, UUID]:
    rate_check(meter, conf.login_failures_per_minute, _FAILURES)
    row = _found(_FIND_CONTROLLER, key_id)
    return UUID(str(row[6])), _verified(row, secret, "projects_controllercredential")


def _found(statement: str, key_id: str) -> tuple[Any, ...]:
    """Once per call of a tool: the ORM takes ten times as long for the same statement."""
    with connection.cursor() as cursor:
        cursor.execute(statement, [key_id])
        row: tuple[Any, ...] | None = cursor.fetchone()
    if row is None:
        raise _UnknownKeyError
    return row


def _verified(row: tuple[Any, ...], secret: str, table: str) -> UUID:
    """The id of a credential, by the first columns of what was found. Raises Unauthenticated, whatever was wrong."""
    credential_id, digest, is_standing = UUID(str(row[0])), row[1], row[5]
    expires_at, revoked_at, last_used_at = map(as_time, row[2:5])
    is_secret_right = hmac.compare_digest(digest, digest_of(secret))
    if not is_secret_right or not is_standing or not _is_valid_now(expires_at, revoked_at):
        raise Unauthenticated
    now = clock.now()
    if last_used_at is None or now - last_used_at > _LAST_USED_GRAIN:
        with connection.cursor() as cursor:
            cursor.execute(_NOTE_USE.format(table=table), [time_as_parameter(now), as_parameter(credential_id)])
    return credential_id


def _is_valid_now(expires_at: datetime | None, revoked_at: datetime | None) -> bool:
    return revoked_at is None and (expires_at is None or expires_at > clock.now())
