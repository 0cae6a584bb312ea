"""How a host becomes a controller without anybody carrying its credential: a code that works once; and how it replaces its own."""

from dataclasses import dataclass
from datetime import timedelta
from hmac import compare_digest
from typing import Final

from django.db import transaction
from django.utils import timezone

from projects.account_errors import EnrolmentRefused
from projects.audit_log import audit
from projects.authentication import (
    ENROLMENT_PREFIX,
    active_credentials,
    controller_create,
    controller_credential_create,
    digest_of,
    make_token,
    parse_token,
)
from projects.conf import conf
from projects.errors import Unauthenticated
from projects.models import Controller, ControllerCredential, EnrolmentCode, Project
from projects.revocation import controller_credential_revoke

CODE_MINUTES: Final = 15.0
OVERLAP: Final = timedelta(hours=24)
"""How long a credential that was replaced is good for at most."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """What a host gets; ``credential`` is shown this once. ``awaits_approval``: it is served once an operator has let it in."""

    project: str
    controller: str
    credential: str
    awaits_approval: bool = False


@transaction.atomic
def enrolment_code_create(
    *, project: Project, name: str, minutes: float = CODE_MINUTES, is_replacement: bool = False, actor: str = "operator"
) -> tuple[EnrolmentCode, str]:
    """A code with which one host becomes the controller ``name`` of ``project``, and its text, which is shown this once.

    Raises ValueError unless the name is free, or, for a replacement, taken; ValidationError for what is no name.
    """
    check_name(project, name, is_replacement=is_replacement)
    key_id, secret, code = make_token(ENROLMENT_PREFIX)
    row = EnrolmentCode(
        project=project,
        controller_name=name,
        is_replacement=is_replacement,
        created_by=actor,
        key_id=key_id,
        digest=digest_of(secret),
        expires_at=timezone.now() + timedelta(minutes=minutes),
    )
    row.full_clean()
    row.save(force_insert=True)
    detail = {"key_id": key_id, "name": name, "replacement": is_replacement}
    audit(actor, "enrolment_code.create", (project.id, None, None), detail)
    return row, code


def check_name(project: Project, name: str, *, is_replacement: bool) -> None:
    """Raises ValueError unless a code for this name may be made."""
    exists = _controller_of(project, name) is not None
    if exists != is_replacement:
        raise ValueError(f"project {project.name!r} {'already has a' if exists else 'has no'} controller {name!r}")


def host_enrol(*, code: str, peer: str = "") -> Enrolled:
    """Uses the code up. Raises EnrolmentRefused, whatever was wrong with it."""
    try:
        key_id, secret = parse_token(code, ENROLMENT_PREFIX)
    except Unauthenticated:
        raise EnrolmentRefused from None
    with transaction.atomic():
        if not _use(key_id, secret, peer):
            raise EnrolmentRefused
        row = EnrolmentCode.objects.select_related("project").get(key_id=key_id)
        controller = _controller_for(row)
        actor = f"enrolment:{row.key_id}"
        awaits = conf.enrolment_approval
        Controller.objects.filter(id=controller.id).update(awaits_approval_since=timezone.now() if awaits else None)
        _, credential = controller_credential_create(controller=controller, actor=actor)
        detail = {"name": controller.name, "from": peer[:64], "awaits_approval": awaits}
        audit(actor, "controller.enrol", (row.project_id, controller.id, None), detail)
    return Enrolled(row.project.name, controller.name, credential, awaits)


@transaction.atomic
def controller_approve(*, controller: Controller, actor: str) -> bool:
    """The host is served from its next attempt on, within half a minute; whether it waited for that."""
    waiting = Controller.objects.filter(id=controller.id, awaits_approval_since__isnull=False, revoked_at__isnull=True)
    if not waiting.update(awaits_approval_since=None):
        return False
    audit(actor, "controller.approve", (controller.project_id, controller.id, None), {"name": controller.name})
    return True


def _use(key_id: str, secret: str, peer: str) -> bool:
    """One statement decides who was first."""
    row = EnrolmentCode.objects.filter(key_id=key_id).first()
    if not compare_digest(row.digest if row is not None else "", digest_of(secret)):
        return False
    now = timezone.now()
    unused = EnrolmentCode.objects.filter(key_id=key_id, used_at__isnull=True, revoked_at__isnull=True, expires_at__gt=now)
    return unused.update(used_at=now, used_from=peer[:64]) == 1


def _controller_for(row: EnrolmentCode) -> Controller:
    existing, actor = _controller_of(row.project, row.controller_name), f"enrolment:{row.key_id}"
    if (existing is not None) != row.is_replacement:
        # The name was taken, or given away, since the code was made.
        raise EnrolmentRefused
    if existing is None:
        return controller_create(project=row.project, name=row.controller_name, actor=actor)
    for credential in ControllerCredential.objects.filter(controller=existing, revoked_at__isnull=True):
        controller_credential_revoke(credential=credential, actor=actor)
    # Another host may take its place at once.
    Controller.objects.filter(id=existing.id).update(instance_id="", alarmed_at=None, alarm="")
    return existing


def _controller_of(project: Project, name: str) -> Controller | None:
    return Controller.objects.filter(project=project, name=name, revoked_at__isnull=True).first()


@transaction.atomic
def controller_credential_rotate(*, credential: ControllerCredential) -> Enrolled:
    """A second credential for the same host. The first stays good for OVERLAP, or until it is revoked. Raises CredentialLimitReached."""
    controller = Controller.objects.select_related("project").get(id=credential.controller_id)
    actor = f"controller:{controller.name}"
    _, text = controller_credential_create(controller=controller, instance_id=credential.instance_id, actor=actor)
    until = timezone.now() + OVERLAP
    for row in active_credentials(controller.id):
        if row.id == credential.id and (row.expires_at is None or row.expires_at > until):
            ControllerCredential.objects.filter(id=row.id).update(expires_at=until)
    audit(actor, "controller_credential.rotate", (controller.project_id, controller.id, None), {"replaced": credential.key_id})
    return Enrolled(controller.project.name, controller.name, text, controller.awaits_approval_since is not None)
