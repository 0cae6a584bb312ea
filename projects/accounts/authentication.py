"""Authentication: which caller an API token names, and which controller a credential names.

Both are bearer tokens of RFC 6750 (``tokens``) and are checked in the same three steps:

1. ``shown_token`` takes key id and secret out of the ``Authorization`` header.
2. ``limited_guesses`` refuses a key id for a while once too many wrong secrets were shown for it
   from one network. The right secret is then refused as well: otherwise guessing could go on.
3. ``find_caller`` or ``_find_controller`` reads the row of the key id, compares the digests and
   checks that the row is neither revoked nor expired.

The row is read on every call, so a revocation takes effect with the next one. A caller's request
enters through ``token_check``, which calls ``find_caller``. While a call waits, ``check_caller``
checks again that its token is still valid. While the database does not answer, nobody is let in.
"""

import hmac
import json
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final, NamedTuple, TypeVar
from uuid import UUID

from projects.accounts.guesses import UnknownKeyError, limited_guesses, require_room
from projects.accounts.permits import Permit
from projects.accounts.tokens import CONTROLLER_PREFIX, ShownToken, digest_of, shown_token
from projects.errors.access import ApprovalRequired, ScopeMissing, Unauthenticated
from projects.models import ApiToken, ApprovalPolicy, ControllerCredential
from projects.models.accounts import stricter
from projects.storage import clock
from projects.storage.access import in_database
from projects.storage.columns import as_parameter, as_time, as_uuid, sql
from projects.storage.rows import execute, row_update

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
"""The scopes an agent needs to run programs and to type into them."""
ADMIN_SCOPE: Final = "admin:*"
"""The scope that includes every other one."""
SCOPES: Final = (*AGENT_SCOPES, ADMIN_SCOPE)

_LAST_USED_STEP: Final = timedelta(minutes=1)
"""How exact ``last_used_at`` is. A write for every call would cost more than the lookup."""


# ---- who is calling ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Caller:
    """A verified caller: the project it belongs to and what it may do there.

    Attributes:
        project_id: the only project that the caller sees.
        label: names the caller in audit rows, such as ``token:<name>``.
        scopes: the rights of the caller, out of ``SCOPES``.
        token_id: the API token that was shown; None for a caller inside the server.
        toolsets: the sets of tools that the token is limited to; empty for no limit.
        starts_per_minute: None for the rate of the settings.
        input_bytes_per_minute: None for the rate of the settings.
        approvals: the calls that a person is asked about first (``ApprovalPolicy``).
        permit: the approval of the call that is being carried out.

    """

    project_id: UUID
    label: str
    scopes: frozenset[str]
    token_id: UUID | None = None
    toolsets: tuple[str, ...] = ()
    starts_per_minute: int | None = None
    input_bytes_per_minute: int | None = None
    approvals: str = ApprovalPolicy.AUTO.value
    permit: Permit | None = None

    def may(self, scope: str) -> bool:
        """Returns True if the caller has ``scope`` or the admin scope."""
        return scope in self.scopes or ADMIN_SCOPE in self.scopes

    def require(self, scope: str) -> None:
        """Refuses a caller without ``scope``.

        Raises:
            ScopeMissing: if the caller has neither ``scope`` nor the admin scope.

        """
        if not self.may(scope):
            raise ScopeMissing(scope)

    @property
    def is_held(self) -> bool:
        """True if a person may have to approve the call before it is carried out."""
        return self.approvals != ApprovalPolicy.AUTO.value

    def cleared(self, permit: Permit | None = None) -> "Caller":
        """Returns the caller for one call that is approved, or needs no approval."""
        return replace(self, approvals=ApprovalPolicy.AUTO.value, permit=permit)

    def require_cleared(self) -> None:
        """Refuses a call that needs a person's approval and has none.

        Raises:
            ApprovalRequired: if a policy holds the caller's calls, and nobody cleared this one.

        """
        if self.is_held:
            raise ApprovalRequired


class VerifiedController(NamedTuple):
    """A verified daemon: its controller, and the credential that it showed."""

    controller_id: UUID
    credential_id: UUID


async def authenticate_controller(header: str | None, peer: str = "") -> VerifiedController:
    """Finds the controller whose credential a daemon shows.

    Args:
        header: the value of ``Authorization``; None if the request has no such header.
        peer: the address that the request came from; wrong secrets are counted by its network.

    Raises:
        Unauthenticated: if the header has no valid credential. The reason is not told.
        RateLimited: if too many wrong credentials were shown.
        StorageUnavailable: if the credential could not be looked up.

    """
    try:
        token = shown_token(header, CONTROLLER_PREFIX)
        async with limited_guesses(token, peer) as meter:
            return await in_database(_find_controller, token, meter)
    except Unauthenticated:
        raise Unauthenticated(
            "a valid credential of a host is required",
            "Enrol the host again if its credential is lost or was revoked.",
        ) from None


def check_caller(caller: Caller) -> None:
    """Checks that the caller's token is still valid, while one of its calls waits.

    Raises:
        Unauthenticated: if the token was deleted or revoked, has expired, or lost its owner.

    """
    if caller.token_id is None:
        return
    row = execute(_SELECT_VALIDITY, [as_parameter(caller.token_id)]).fetchone()
    if row is None:
        raise Unauthenticated
    expires_at, revoked_at, is_owner_active = row
    if not is_owner_active or not _is_valid_now(as_time(expires_at), as_time(revoked_at)):
        raise Unauthenticated


# ---- looking up --------------------------------------------------------------------------------

# A token that a user made is valid while that user is active and may use the project.
_IS_OWNER_ACTIVE: Final = """
t.owner_id IS NULL OR EXISTS (
    SELECT 1 FROM auth_user u WHERE u.id = t.owner_id AND u.is_active AND (
        u.is_superuser OR EXISTS (
            SELECT 1 FROM projects_project_members m
            WHERE m.project_id = t.project_id AND m.user_id = u.id)))
"""
# A token that a restore suspended is refused as a revoked one is.
_REVOKED_AT: Final = "COALESCE(t.revoked_at, t.suspended_at)"
_SELECT_VALIDITY: Final = sql(
    """
SELECT t.expires_at, {revoked_at}, {is_owner_active} FROM projects_apitoken t WHERE t.id = %s
""",
    revoked_at=_REVOKED_AT,
    is_owner_active=_IS_OWNER_ACTIVE,
)
_SELECT_TOKEN: Final = sql(
    """
SELECT t.id, t.digest, t.expires_at, {revoked_at}, t.last_used_at, {is_owner_active},
       t.project_id, t.name, t.scopes, t.toolsets, t.starts_per_minute, t.input_bytes_per_minute,
       t.approvals, p.approvals
FROM projects_apitoken t JOIN projects_project p ON p.id = t.project_id WHERE t.key_id = %s
""",
    revoked_at=_REVOKED_AT,
    is_owner_active=_IS_OWNER_ACTIVE,
)
_SELECT_CREDENTIAL: Final = """
SELECT k.id, k.digest, k.expires_at, k.revoked_at, k.last_used_at, c.revoked_at IS NULL,
       k.controller_id
FROM projects_controllercredential k JOIN projects_controller c ON c.id = k.controller_id
WHERE k.key_id = %s
"""


class _TokenRow(NamedTuple):
    """The columns of ``_SELECT_TOKEN``, in its order and as the database in use returns them."""

    id: UUID | str
    digest: str
    expires_at: datetime | str | None
    revoked_at: datetime | str | None
    last_used_at: datetime | str | None
    is_owner_active: bool
    project_id: UUID | str
    name: str
    scopes: str
    toolsets: str
    starts_per_minute: int | None
    input_bytes_per_minute: int | None
    approvals: str
    project_approvals: str


class _CredentialRow(NamedTuple):
    """The columns of ``_SELECT_CREDENTIAL``. The owner of a credential is its controller."""

    id: UUID | str
    digest: str
    expires_at: datetime | str | None
    revoked_at: datetime | str | None
    last_used_at: datetime | str | None
    is_owner_active: bool
    controller_id: UUID | str


_Row = TypeVar("_Row", _TokenRow, _CredentialRow)


def find_caller(token: ShownToken, meter: str) -> Caller:
    """Finds the caller whose token is shown. Runs in a database thread.

    Args:
        token: the key id and the secret that were shown.
        meter: names the count of wrong secrets, as ``limited_guesses`` yields it.

    Raises:
        RateLimited: if too many wrong secrets were counted.
        Unauthenticated: if the token is not valid.

    """
    row = _verified_row(_TokenRow, _SELECT_TOKEN, token, meter)
    _record_use(ApiToken, row)
    return Caller(
        project_id=as_uuid(str(row.project_id)),
        label=f"token:{row.name}",
        scopes=frozenset(json.loads(row.scopes)),
        token_id=as_uuid(str(row.id)),
        toolsets=tuple(json.loads(row.toolsets)),
        starts_per_minute=row.starts_per_minute,
        input_bytes_per_minute=row.input_bytes_per_minute,
        approvals=stricter(row.approvals, row.project_approvals),
    )


def _find_controller(token: ShownToken, meter: str) -> VerifiedController:
    row = _verified_row(_CredentialRow, _SELECT_CREDENTIAL, token, meter)
    _record_use(ControllerCredential, row)
    return VerifiedController(
        controller_id=as_uuid(str(row.controller_id)), credential_id=as_uuid(str(row.id))
    )


def _verified_row(kind: type[_Row], statement: str, token: ShownToken, meter: str) -> _Row:
    """Reads the row of the key id and compares the digest of the secret that was shown.

    The statement is written by hand: the ORM takes ten times as long, and every call of a tool
    pays for that. ``kind`` names the columns of ``statement`` in their order.

    Raises:
        RateLimited: if too many wrong secrets were counted on ``meter``.
        UnknownKeyError: if no row has this key id.
        Unauthenticated: if the secret is wrong, or the row is revoked, expired or without an
            active owner. All reasons look the same to the caller.

    """
    require_room(meter)
    columns = execute(statement, [token.key_id]).fetchone()
    if columns is None:
        raise UnknownKeyError
    row = kind(*columns)
    # In constant time: the time of a plain comparison would give away how many characters match.
    is_right = hmac.compare_digest(row.digest, digest_of(token.secret))
    is_valid = _is_valid_now(as_time(row.expires_at), as_time(row.revoked_at))
    if not (is_right and row.is_owner_active and is_valid):
        raise Unauthenticated
    return row


def _is_valid_now(expires_at: datetime | None, revoked_at: datetime | None) -> bool:
    if revoked_at is not None:
        return False
    return expires_at is None or expires_at > clock.now()


def _record_use(
    model: type[ApiToken] | type[ControllerCredential], row: _TokenRow | _CredentialRow
) -> None:
    """Writes ``last_used_at``, which people read in lists, at most once a minute."""
    now, last_used_at = clock.now(), as_time(row.last_used_at)
    if last_used_at is None or now - last_used_at > _LAST_USED_STEP:
        row_update(model, as_uuid(str(row.id)), last_used_at=now)
