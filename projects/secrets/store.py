"""Secrets by name: kept sealed, and opened only on their way to the terminal that asks for one.

No function here gives a value to anything but the command that is put into the outbox.
"""

import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.apps import apps
from django.db import transaction
from django.db.models import QuerySet

from projects.audit.log import audit
from projects.errors.secrets import SecretNotFound
from projects.models import CommandSession, Controller, Project, Secret
from projects.models.sealed_field import SealedField
from projects.secrets.masks import masks_reseal
from projects.secrets.terms import Terms, UnusableTerms
from projects.storage import clock
from projects.storage.sealing import open_or_none, reseal, seal

logger = logging.getLogger(__name__)

MAX_VALUE_BYTES: Final = 1024
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class UnreadableSecret(Exception):
    """None of the keys opens the secret any more."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{name} cannot be decrypted: is a key missing from HOLDLINE_ENCRYPTION_KEYS?"
        )


class UnusableValue(ValueError):
    """The value cannot be typed at a prompt; the text never quotes it."""


class ValueNeeded(UnusableValue):
    """The terms allow more than before, so the value has to be given again."""

    def __init__(self) -> None:
        super().__init__(
            "these terms allow more than before: give the value again, because only those who "
            "know it may have it typed elsewhere"
        )


@dataclass(frozen=True, slots=True)
class Typable:
    """An opened secret, for a terminal that asks for one of ``programs``; none: for any program.

    No representation of it shows the value.
    """

    value: bytes = field(repr=False)
    may_echo: bool = False
    programs: tuple[str, ...] = ()


@transaction.atomic
def secret_set(
    *, project: Project, name: str, value: str | None, terms: Terms, actor: str
) -> Secret:
    """Makes a secret, or replaces its terms, and its value unless that is None.

    Raises UnusableValue, ValueNeeded or UnusableTerms.
    """
    secret = Secret.objects.filter(project=project, name=name).first() or Secret(
        project=project, name=name
    )
    secret_write(secret, value=value, terms=terms, actor=actor)
    return secret


@transaction.atomic
def secret_write(secret: Secret, *, value: str | None, terms: Terms, actor: str) -> None:
    """Saves the row ``secret``, new or not: every way to change one comes through here.

    Raises UnusableValue, ValueNeeded or UnusableTerms.
    """
    earlier = Secret.objects.select_for_update().filter(id=secret.id).first()
    check_change(earlier, value=value, terms=terms, project=secret.project)
    if value is not None:
        secret.sealed = seal(secret.id.bytes + value.encode())
        secret.changed_at = clock.now()
    secret.any_controller, secret.may_echo = terms.any_controller, terms.may_echo
    secret.allowed_commands = list(terms.commands)
    secret.clean_fields()
    secret.save()
    secret.controllers.set(Controller.objects.filter(id__in=terms.controllers))
    audit_secret(actor, "secret.change" if value is None else "secret.set", secret)


def check_change(
    earlier: Secret | None, *, value: str | None, terms: Terms, project: Project
) -> None:
    """Checks that the row ``earlier`` may become this.

    Raises UnusableValue, ValueNeeded or UnusableTerms.
    """
    terms.check()
    if Controller.objects.filter(id__in=terms.controllers).exclude(project=project).exists():
        raise UnusableTerms("a controller is of another project")
    if value is not None:
        check_value(value)
    elif earlier is None or terms.widen(terms_of(earlier)):
        raise ValueNeeded


def terms_of(secret: Secret) -> Terms:
    """The terms of a row as it is in the database."""
    return Terms(
        any_controller=secret.any_controller,
        controllers=frozenset(controller.id for controller in secret.controllers.all()),
        commands=tuple(map(str, secret.allowed_commands)),
        may_echo=secret.may_echo,
    )


@transaction.atomic
def secret_delete(secret: Secret, *, actor: str) -> None:
    """Deletes the secret, so that nobody can have it typed any more."""
    secret.delete()
    audit_secret(actor, "secret.delete", secret)


def secret_open(project_id: UUID, name: str, *, controller_id: UUID, command: str) -> Typable:
    """Opens the secret for the transaction that has it typed.

    Raises:
        SecretNotFound: for whatever reason, with the names of the secrets that could be typed.

    """
    secrets = list(Secret.objects.filter(project_id=project_id).prefetch_related("controllers"))
    programs = {secret.name: _programs(secret, controller_id, command) for secret in secrets}
    usable = sorted(usable for usable, found in programs.items() if found is not None)
    secret = next((secret for secret in secrets if secret.name == name), None)
    if secret is None or (for_programs := programs[name]) is None:
        raise SecretNotFound(name, usable)
    plain = open_or_none(secret.sealed, f"secret {name} of project {project_id}")
    if plain is None or plain[:16] != secret.id.bytes:
        # The value was sealed for another row, or by another key: somebody wrote into the table.
        raise SecretNotFound(name, [other for other in usable if other != name])
    Secret.objects.filter(id=secret.id).update(last_used_at=clock.now())
    # Without programs an echoed secret would go to any program that asks.
    return Typable(
        plain[16:], may_echo=secret.may_echo and bool(for_programs), programs=tuple(for_programs)
    )


@transaction.atomic
def secrets_reseal() -> tuple[int, int]:
    """Seals everything sealed, in every app, with the newest key. Older keys may then be retired.

    Returns the numbers of secrets and of other values. Raises UnreadableSecret, and nothing is
    changed then.
    """
    fields = [field for model in apps.get_models() for field in model._meta.concrete_fields]
    counts = [
        (field.model, _column_resealed(field)) for field in fields if isinstance(field, SealedField)
    ]
    secrets = sum(count for model, count in counts if model is Secret)
    return secrets, sum(count for _, count in counts) - secrets


def _column_resealed(column: SealedField) -> int:
    rows: QuerySet[Any] = QuerySet(column.model).filter(**{f"{column.name}__isnull": False})
    # Row by row, each under its lock: a value that a call stores meanwhile is not overwritten.
    keys = list(rows.values_list("pk", flat=True))
    count = 0
    for key in keys:
        sealed = (
            rows.select_for_update(no_key=True)
            .filter(pk=key)
            .values_list(column.name, flat=True)
            .first()
        )
        if sealed is not None:
            name = f"{column.verbose_name} of {column.model.__name__} {key}"
            renew = partial(masks_reseal, key) if column.model is CommandSession else reseal
            count += rows.filter(pk=key).update(**{column.name: _resealed(sealed, name, renew)})
    return count


def _resealed(
    sealed: bytes | memoryview, name: str, renew: Callable[[bytes | memoryview], bytes]
) -> bytes:
    try:
        return renew(sealed)
    except InvalidToken:
        raise UnreadableSecret(name) from None


def check_value(value: str) -> None:
    """Raises UnusableValue unless ``value`` is one line that a terminal takes as it is."""
    if not value:
        raise UnusableValue("a secret cannot be empty")
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise UnusableValue(f"a secret has at most {MAX_VALUE_BYTES} bytes")
    if _CONTROLS.search(value):
        raise UnusableValue(
            "a secret is one line without control characters; a terminal would act on them"
        )


def audit_secret(actor: str, action: str, secret: Secret) -> None:
    """Audits what was done to the secret. The value is never in the row."""
    audit(actor, action, (secret.project_id, None, None), {"name": secret.name})


def _programs(secret: Secret, controller_id: UUID, command: str) -> list[str] | None:
    """The programs that ``command`` runs; None if the secret may not be typed there."""
    terms = terms_of(secret)
    is_here = terms.any_controller or controller_id in terms.controllers
    return terms.programs_of(command) if is_here else None
