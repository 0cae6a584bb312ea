"""API tokens, controllers and their credentials are made here; ``authentication`` checks them.

Every function writes its audit row in the same transaction.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from projects.accounts.authentication import AGENT_SCOPES, SCOPES
from projects.accounts.errors import CredentialLimitReached
from projects.accounts.tokens import API_PREFIX, CONTROLLER_PREFIX, digest_of, make_token
from projects.audit.log import audit
from projects.models import ApiToken, ApprovalPolicy, Controller, ControllerCredential, Project
from projects.storage import clock

MAX_ACTIVE_CREDENTIALS: Final = 2
"""Per controller: the credential in use, and the one that will replace it."""


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
    approvals: str = ApprovalPolicy.AUTO.value,
    owner: AbstractBaseUser | None = None,
    is_suspended: bool = False,
    actor: str = "operator",
) -> tuple[ApiToken, str]:
    """Makes an API token for ``project``.

    Args:
        project: the only project that the token opens.
        name: shown in lists, and in audit rows as ``token:<name>``.
        scopes: the rights of the token, out of ``SCOPES``.
        toolsets: the sets of tools the token is limited to; empty for no limit.
        expires_at: None for a token that does not expire.
        starts_per_minute: None for the rate of the settings.
        input_bytes_per_minute: None for the rate of the settings.
        approvals: the token's calls that a person is asked about first; the stricter of this and
            the project's policy holds.
        owner: the token works only while this user is active and belongs to the project.
        is_suspended: the token is refused until the restore of the database is confirmed.
        actor: who makes the token, for the audit row.

    Returns:
        The row, and the token's text, which cannot be shown again.

    Raises:
        ValueError: if a scope is unknown.
        ValidationError: if the name or a rate cannot be stored.

    """
    unknown = sorted(set(scopes) - set(SCOPES))
    if unknown:
        raise ValueError(f"unknown scopes {', '.join(unknown)}; known: {', '.join(SCOPES)}")
    token = make_token(API_PREFIX)
    row = ApiToken(
        project=project,
        name=name,
        scopes=sorted(set(scopes)),
        toolsets=sorted(set(toolsets)),
        key_id=token.key_id,
        digest=digest_of(token.secret),
        expires_at=expires_at,
        starts_per_minute=starts_per_minute,
        input_bytes_per_minute=input_bytes_per_minute,
        approvals=approvals,
        owner_id=None if owner is None else owner.pk,
        suspended_at=clock.now() if is_suspended else None,
    )
    # An empty list is a value of these two.
    row.full_clean(exclude=("scopes", "toolsets"))
    row.save(force_insert=True)
    detail = {"key_id": token.key_id, "name": name, "scopes": row.scopes}
    if approvals != ApprovalPolicy.AUTO:
        detail["approvals"] = approvals
    audit(actor, "api_token.create", (project.id, None, None), detail)
    return row, token.text


@transaction.atomic
def controller_create(*, project: Project, name: str, actor: str = "operator") -> Controller:
    """Makes a controller, the row of one host, with no credential yet.

    Raises:
        ValidationError: if ``name`` is not a valid name.
        IntegrityError: if the project has a controller of this name.

    """
    controller = Controller(project=project, name=name)
    controller.clean_fields()
    controller.save(force_insert=True)
    audit(actor, "controller.create", (project.id, controller.id, None), {"name": name})
    return controller


@transaction.atomic
def controller_credential_create(
    *,
    controller: Controller,
    expires_at: datetime | None = None,
    instance_id: str = "",
    actor: str = "operator",
) -> tuple[ControllerCredential, str]:
    """Makes a credential for ``controller``. Older credentials stay valid until they are revoked.

    Args:
        controller: the host that the credential is for.
        expires_at: None for a credential that does not expire.
        instance_id: the daemon that may use it; empty for the first daemon that shows it.
        actor: who makes the credential, for the audit row.

    Returns:
        The row, and the credential's text, which cannot be shown again.

    Raises:
        CredentialLimitReached: if the controller has MAX_ACTIVE_CREDENTIALS already.

    """
    # The lock makes two calls for one controller wait for each other: without it both would count
    # one credential and a third would be made.
    Controller.objects.select_for_update().filter(id=controller.id).first()
    if len(active_credentials(controller.id)) >= MAX_ACTIVE_CREDENTIALS:
        raise CredentialLimitReached(MAX_ACTIVE_CREDENTIALS)
    token = make_token(CONTROLLER_PREFIX)
    row = ControllerCredential.objects.create(
        controller=controller,
        key_id=token.key_id,
        digest=digest_of(token.secret),
        expires_at=expires_at,
        instance_id=instance_id,
    )
    about = (controller.project_id, controller.id, None)
    audit(actor, "controller_credential.create", about, {"key_id": token.key_id})
    return row, token.text


def active_credentials(controller_id: UUID) -> list[ControllerCredential]:
    """The controller's credentials that are neither revoked nor expired, oldest first."""
    now = clock.now()
    rows = ControllerCredential.objects.filter(controller_id=controller_id, revoked_at__isnull=True)
    return [
        row
        for row in rows.order_by("created_at", "id")
        if row.expires_at is None or row.expires_at > now
    ]
