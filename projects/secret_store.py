"""Secrets by name: kept sealed, opened only on their way to the terminal that asks for one.

No function here takes a value from, or gives one to, anything but the command that is put into the outbox.
"""

import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from cryptography.fernet import InvalidToken
from django.db import transaction
from django.utils import timezone

from controller_client.command_policy.shell_grammar import NotPlain, parse_plan
from projects.audit_log import audit
from projects.encryption import open_sealed, reseal, seal
from projects.errors import SecretNotFound
from projects.models import Controller, ControllerCommand, Project, Secret

logger = logging.getLogger(__name__)

MAX_VALUE_BYTES: Final = 1024
MIN_MASKED_BYTES: Final = 6
"""Shorter values are typed but not masked: too much else would be."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class UnreadableSecret(Exception):
    """No key opens it any more."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} cannot be decrypted: is a key missing from HOLDLINE_ENCRYPTION_KEYS?")


class UnusableValue(ValueError):
    """The value cannot be typed at a prompt; the text never quotes it."""


@dataclass(frozen=True, slots=True)
class Typable:
    """An opened secret. Its value is in no representation of it."""

    value: bytes = field(repr=False)
    may_echo: bool


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Where a secret may be typed, and when."""

    any_controller: bool = False
    controllers: Sequence[Controller] = ()
    allowed_commands: Sequence[str] = ()
    may_echo: bool = False


@transaction.atomic
def secret_set(*, project: Project, name: str, value: str, terms: Terms, actor: str) -> Secret:
    """Makes a secret, or replaces its value and its terms. Raises UnusableValue."""
    check_value(value)
    secret = Secret.objects.select_for_update().filter(project=project, name=name).first() or Secret(project=project, name=name)
    secret_seal(secret, value)
    secret.any_controller, secret.may_echo = terms.any_controller, terms.may_echo
    secret.allowed_commands = list(terms.allowed_commands)
    secret.clean_fields()
    secret.save()
    secret.controllers.set(terms.controllers)
    audit_secret(actor, "secret.set", secret)
    return secret


def secret_seal(secret: Secret, value: str) -> None:
    """Puts ``value`` into the row, which is not saved yet."""
    secret.sealed = seal(secret.id.bytes + value.encode())
    secret.changed_at = timezone.now()


@transaction.atomic
def secret_delete(secret: Secret, *, actor: str) -> None:
    """Nobody can have it typed any more."""
    secret.delete()
    audit_secret(actor, "secret.delete", secret)


def secret_open(project_id: UUID, name: str, *, controller_id: UUID, command: str) -> Typable:
    """The secret, for the transaction that has it typed. Raises SecretNotFound, whatever the reason is."""
    secret = Secret.objects.filter(project_id=project_id, name=name).first()
    if secret is None or not _may_be_typed(secret, controller_id, command):
        raise SecretNotFound(name)
    try:
        plain = open_sealed(secret.sealed)
    except InvalidToken:
        logger.error("%s", UnreadableSecret(f"secret {name} of {project_id}"))
        plain = b""
    if plain[:16] != secret.id.bytes:
        # Nobody put it there through us: another row's value, or another key's.
        raise SecretNotFound(name)
    Secret.objects.filter(id=secret.id).update(last_used_at=timezone.now())
    return Typable(plain[16:], secret.may_echo)


@transaction.atomic
def secrets_reseal() -> tuple[int, int]:
    """Seals everything that is sealed under the newest key: (secrets, commands on their way). Older keys may then go.

    Raises UnreadableSecret, with nothing changed.
    """
    secrets = list(Secret.objects.select_for_update())
    for secret in secrets:
        Secret.objects.filter(id=secret.id).update(sealed=_resealed(secret.sealed, f"secret {secret.name} of {secret.project_id}"))
    commands = list(ControllerCommand.objects.select_for_update().filter(body__isnull=False, settled_at__isnull=True))
    for command in commands:
        ControllerCommand.objects.filter(id=command.id).update(body=_resealed(command.body or b"", str(command)))
    return len(secrets), len(commands)


def _resealed(sealed: bytes | memoryview, name: str) -> bytes:
    try:
        return reseal(sealed)
    except InvalidToken:
        raise UnreadableSecret(name) from None


def check_value(value: str) -> None:
    """Raises UnusableValue unless ``value`` is one line that a terminal takes as it is."""
    if not value:
        raise UnusableValue("a secret cannot be empty")
    if len(value.encode()) > MAX_VALUE_BYTES:
        raise UnusableValue(f"a secret has at most {MAX_VALUE_BYTES} bytes")
    if _CONTROLS.search(value):
        raise UnusableValue("a secret is one line without control characters; a terminal would act on them")


def audit_secret(actor: str, action: str, secret: Secret) -> None:
    """What was done to which secret, never with which value."""
    audit(actor, action, (secret.project_id, None, None), {"name": secret.name})


def _may_be_typed(secret: Secret, controller_id: UUID, command: str) -> bool:
    if not secret.any_controller and not secret.controllers.filter(id=controller_id).exists():
        return False
    return not secret.allowed_commands or set(_programs_of(command)) <= set(secret.allowed_commands)


def _programs_of(command: str) -> Iterable[str]:
    """Every program of a command line as it is written there; one that nobody can list, if the line is more than plain commands."""
    try:
        return {words[0] for words in parse_plan(command).commands()}
    except NotPlain:
        return {""}
