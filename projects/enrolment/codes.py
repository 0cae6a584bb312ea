"""Enrolment of hosts with a code that works once, and the replacement of their credentials.

Nobody has to carry a credential to the host.
"""

from dataclasses import dataclass
from datetime import timedelta
from hmac import compare_digest
from typing import Any, Final

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Q

from projects.accounts.credentials import (
    active_credentials,
    controller_create,
    controller_credential_create,
)
from projects.accounts.errors import EnrolmentRefused
from projects.accounts.tokens import ENROLMENT_PREFIX, digest_of, make_token, parse_token
from projects.audit.log import audit
from projects.conf import conf
from projects.enrolment.revocation import controller_credential_revoke
from projects.errors.access import Unauthenticated
from projects.errors.calls import InvalidArgument
from projects.models import Controller, ControllerCredential, EnrolmentCode, Project
from projects.storage import clock

CODE_MINUTES: Final = 15.0
MAX_KEY_HOSTS: Final = 10_000
MAX_KEY_HOURS: Final = 24 * 366
MAX_CODE_MINUTES: Final = 60 * MAX_KEY_HOURS
# No host waits this long for the answer to a rotation.
ANSWER_LASTS: Final = timedelta(minutes=1)
# A server of an earlier version, which still runs beside this one, does not count.
NOT_USED_UP: Final = Q(used_at__isnull=True) | Q(hosts__gt=1, enrolled__lt=F("hosts"))
"""The codes that still serve a host, unless they expired or were withdrawn."""


@dataclass(frozen=True, slots=True)
class Enrolled:
    """The answer to a host: its controller, and the credential, which is shown only here.

    A host with ``awaits_approval`` is served once an operator has approved it.
    """

    project: str
    controller: str
    credential: str
    awaits_approval: bool = False


@transaction.atomic
def enrolment_code_create(
    *,
    project: Project,
    name: str,
    minutes: float = CODE_MINUTES,
    is_replacement: bool = False,
    labels: str = "",
    actor: str = "operator",
) -> tuple[EnrolmentCode, str]:
    """Makes a code with which one host becomes the controller ``name`` of ``project``.

    Returns the row, and the code's text, which cannot be shown again.

    Raises:
        ValueError: if the name is taken, or, for a replacement, is not.
        ValidationError: if ``name`` is not a valid name, ``labels`` are not words, or ``minutes``
            is out of range.

    """
    if not 0 < minutes <= MAX_CODE_MINUTES:
        raise ValidationError(
            f"A code is valid for more than 0 and at most {MAX_CODE_MINUTES} minutes."
        )
    if not name:
        raise ValueError("a code needs the name of its host")
    check_name(project, name, is_replacement=is_replacement)
    row = EnrolmentCode(
        project=project, controller_name=name, is_replacement=is_replacement, labels=labels
    )
    detail = {"name": name, "replacement": is_replacement}
    return row, _made(row, timedelta(minutes=minutes), detail, actor)


@transaction.atomic
def enrolment_key_create(
    *, project: Project, hosts: int, hours: float, labels: str = "", actor: str = "operator"
) -> tuple[EnrolmentCode, str]:
    """Makes a key with which ``hosts`` hosts enrol within ``hours``, each under its own name.

    Returns the row, and the key's text, which cannot be shown again.

    Raises:
        ValidationError: if ``labels`` are not words, or the numbers are out of range.

    """
    if not (1 <= hosts <= MAX_KEY_HOSTS and 0 < hours <= MAX_KEY_HOURS):
        raise ValidationError(
            f"A key serves 1 to {MAX_KEY_HOSTS} hosts, for at most {MAX_KEY_HOURS} hours."
        )
    row = EnrolmentCode(project=project, hosts=hosts, labels=labels)
    return row, _made(row, timedelta(hours=hours), {"hosts": hosts, "labels": labels}, actor)


def _made(row: EnrolmentCode, lifetime: timedelta, detail: dict[str, Any], actor: str) -> str:
    """Stores the code with a secret of its own, and returns its text."""
    row.key_id, secret, code = make_token(ENROLMENT_PREFIX)
    row.digest, row.created_by = digest_of(secret), actor
    row.created_at = clock.now()
    row.expires_at = row.created_at + lifetime
    row.full_clean()
    row.save(force_insert=True)
    audit(
        actor,
        "enrolment_code.create",
        (row.project_id, None, None),
        {"key_id": row.key_id, **detail},
    )
    return code


def check_name(project: Project, name: str, *, is_replacement: bool) -> None:
    """Raises ValueError unless a code for this name may be made."""
    exists = _controller_of(project, name) is not None
    if exists != is_replacement:
        raise ValueError(
            f"project {project.name!r} {'already has a' if exists else 'has no'} controller "
            f"{name!r}"
        )


def host_enrol(*, code: str, peer: str = "", name: str = "", labels: str = "") -> Enrolled:
    """Uses the code up and makes the host a controller.

    ``name`` is the host's own, for a key. ``labels`` are the host's, beside those of the code.

    Raises:
        EnrolmentRefused: if the code is not valid. The reason is not told.
        InvalidArgument: if the code is valid, and the host's name or labels are not.

    """
    try:
        key_id, secret = parse_token(code, ENROLMENT_PREFIX)
    except Unauthenticated:
        raise EnrolmentRefused from None
    with transaction.atomic():
        if not _use(key_id, secret, peer):
            raise EnrolmentRefused
        row = EnrolmentCode.objects.select_related("project").get(key_id=key_id)
        controller = _controller_for(row, name)
        actor = f"enrolment:{row.key_id}"
        awaits = conf.enrolment_approval
        # A host that replaces another one keeps the labels that its operator gave it.
        labels = _united(controller.labels, row.labels, labels)
        Controller.objects.filter(id=controller.id).update(
            awaits_approval_since=clock.now() if awaits else None, labels=labels
        )
        _, credential = controller_credential_create(controller=controller, actor=actor)
        detail = {
            "name": controller.name,
            "from": peer[:64],
            "awaits_approval": awaits,
            "labels": labels,
        }
        audit(actor, "controller.enrol", (row.project_id, controller.id, None), detail)
    return Enrolled(row.project.name, controller.name, credential, awaits)


@transaction.atomic
def controller_approve(*, controller: Controller, actor: str) -> bool:
    """Lets a waiting host be served from its next attempt to connect, within half a minute.

    Returns False if the host did not wait for an approval.
    """
    waiting = Controller.objects.filter(
        id=controller.id, awaits_approval_since__isnull=False, revoked_at__isnull=True
    )
    if not waiting.update(awaits_approval_since=None):
        return False
    audit(
        actor,
        "controller.approve",
        (controller.project_id, controller.id, None),
        {"name": controller.name},
    )
    return True


@transaction.atomic
def alarm_dismiss(*, controller: Controller, actor: str) -> bool:
    """Removes the alarm of a host, which the audit row keeps. Returns False if there is none."""
    alarmed = Controller.objects.select_for_update().filter(
        id=controller.id, alarmed_at__isnull=False
    )
    row = alarmed.first()
    if row is None:
        return False
    alarmed.update(alarmed_at=None, alarm="")
    about = (controller.project_id, controller.id, None)
    audit(actor, "controller.dismiss_alarm", about, {"alarm": row.alarm})
    return True


@transaction.atomic
def enrolment_code_withdraw(*, code: EnrolmentCode, actor: str) -> bool:
    """Has no host enrol with the code any more. Returns False if none could anyway."""
    unused = EnrolmentCode.objects.filter(NOT_USED_UP, id=code.id, revoked_at__isnull=True)
    if not unused.update(revoked_at=clock.now()):
        return False
    about = (code.project_id, None, None)
    audit(actor, "enrolment_code.withdraw", about, {"key_id": code.key_id})
    return True


def _use(key_id: str, secret: str, peer: str) -> bool:
    """Marks the code as used; False if it is not valid. One statement decides who was first."""
    row = EnrolmentCode.objects.filter(key_id=key_id).first()
    if not compare_digest(row.digest if row is not None else "", digest_of(secret)):
        return False
    now = clock.now()
    unused = EnrolmentCode.objects.filter(
        NOT_USED_UP, key_id=key_id, revoked_at__isnull=True, expires_at__gt=now
    )
    used = unused.update(used_at=now, used_from=peer[:64], enrolled=F("enrolled") + 1)
    return used == 1


def _united(*labels: str) -> str:
    """All the labels, each once. Raises InvalidArgument."""
    united = " ".join(sorted({label for some in labels for label in some.split()}))
    try:
        Controller._meta.get_field("labels").clean(united, None)
    except ValidationError as error:
        raise InvalidArgument([f"labels: {' '.join(error.messages)}"]) from None
    return united


def _of_key(row: EnrolmentCode, name: str) -> Controller:
    """The controller of a host that enrols with a key, under its own name."""
    try:
        Controller._meta.get_field("name").clean(name, None)
    except ValidationError:
        raise InvalidArgument(
            ["name: with a key, a host needs a name of letters, digits, - and _"]
        ) from None
    taken = InvalidArgument([f"name: {name} is taken; choose another with --name"])
    if _controller_of(row.project, name) is not None:
        raise taken
    return _made_by(row, name, taken)


def _made_by(row: EnrolmentCode, name: str, taken: Exception) -> Controller:
    """A new controller. Raises ``taken`` if another host takes the name at the same moment."""
    try:
        return controller_create(project=row.project, name=name, actor=f"enrolment:{row.key_id}")
    except IntegrityError:
        raise taken from None


def _controller_for(row: EnrolmentCode, name: str) -> Controller:
    if not row.controller_name:
        return _of_key(row, name)
    existing, actor = _controller_of(row.project, row.controller_name), f"enrolment:{row.key_id}"
    if (existing is not None) != row.is_replacement:
        # The name was taken or freed since the code was made.
        raise EnrolmentRefused
    if existing is None:
        return _made_by(row, row.controller_name, EnrolmentRefused())
    for credential in ControllerCredential.objects.filter(
        controller=existing, revoked_at__isnull=True
    ):
        controller_credential_revoke(credential=credential, actor=actor)
    # Without an instance, a daemon on another host may connect at once.
    Controller.objects.filter(id=existing.id).update(instance_id="", alarmed_at=None, alarm="")
    return existing


def _controller_of(project: Project, name: str) -> Controller | None:
    return Controller.objects.filter(project=project, name=name, revoked_at__isnull=True).first()


@transaction.atomic
def controller_credential_rotate(*, credential: ControllerCredential) -> Enrolled:
    """Makes a second credential for the same host.

    The first stays valid for ``ControllerCredential.OVERLAP``, or until it is revoked. A credential
    older than the first is revoked at once, unless the host is connected with it. So is a newer one
    that the host never got: the answer to an earlier rotation was lost, or could not be stored.

    Raises:
        Unauthenticated: if the credential was revoked, or expired, since it was shown.
        CredentialLimitReached: if both places are taken.

    """
    # Under the lock that a revocation takes, too: whoever revoked a credential is rid of the host.
    locked = Controller.objects.select_for_update(of=("self",)).select_related("project")
    controller = locked.get(id=credential.controller_id)
    if credential.id not in {row.id for row in active_credentials(controller.id)}:
        raise Unauthenticated
    actor = f"controller:{controller.name}"
    for row in active_credentials(controller.id):
        is_older = row.created_at < credential.created_at
        if (is_older and row.id != controller.connected_credential_id) or _is_lost(row, credential):
            controller_credential_revoke(credential=row, actor=actor)
    _, text = controller_credential_create(
        controller=controller, instance_id=credential.instance_id, actor=actor
    )
    until = clock.now() + ControllerCredential.OVERLAP
    for row in active_credentials(controller.id):
        if row.id == credential.id and (row.expires_at is None or row.expires_at > until):
            ControllerCredential.objects.filter(id=row.id).update(expires_at=until)
    audit(
        actor,
        "controller_credential.rotate",
        (controller.project_id, controller.id, None),
        {"replaced": credential.key_id},
    )
    return Enrolled(
        controller.project.name, controller.name, text, controller.awaits_approval_since is not None
    )


def _is_lost(row: ControllerCredential, shown: ControllerCredential) -> bool:
    """Tells whether a host that shows ``shown`` rotated to ``row`` before, and did not get it.

    A credential that is carried to the host by hand names no daemon yet, and is left alone.
    """
    return (
        shown.created_at < row.created_at < clock.now() - ANSWER_LASTS
        and row.last_used_at is None
        and row.instance_id == shown.instance_id != ""
    )
