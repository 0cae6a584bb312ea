"""Targets as operators set them: the address and the key are sealed, and shown to nobody."""

import secrets
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from projects.audit.log import audit
from projects.models import AttentionTarget
from projects.models.attention_kinds import TELLABLE
from projects.storage.sealing import open_or_none, seal

Way = AttentionTarget.Way

KEY_PREFIX: Final = "whsec_"
_KEY_BYTES: Final = 32
_SHORTEST_KEY, _LONGEST_KEY = 24, 64
MAX_ADDRESS_CHARS: Final = 2048


class UnusableTarget(ValueError):
    """The address, the key or the kinds of a target cannot be used; its text says why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The sealed parts of a target. They are never logged and never shown."""

    address: str
    key: str


@transaction.atomic
def target_save(
    target: AttentionTarget, *, address: str | None, key: str | None, actor: str
) -> str | None:
    """Store a target and its audit row. None keeps the address or the key as it is.

    An address serves no other way: a target that gets another way needs a new one. A key goes to
    no other host, and serves no other way: it is forgotten if one of them changes. A webhook
    without a key gets one. Returns that new key, which nothing shows again. Raises UnusableTarget,
    and ValidationError for a name that is none.
    """
    before = AttentionTarget.objects.filter(id=target.id).first()
    if address is None and (before is None or before.way != target.way):
        raise UnusableTarget("A new target, or another way, needs an address.")
    if address is not None:
        target.place = check_address(target.way, address)
        target.sealed_address = seal(address.encode())
    check_kinds(target.kinds)
    if before is not None and not _keeps_key(before, target):
        target.sealed_key = None
    made = None
    if key is None and target.way == Way.WEBHOOK and target.sealed_key is None:
        key = made = new_key()
    if key is not None:
        check_key(target.way, key)
        target.sealed_key = seal(key.encode()) if key else None
    target.clean_fields()
    target.save()
    detail = {"name": target.name, "way": target.way, "place": target.place, "kinds": target.kinds}
    action = "attention_target.create" if before is None else "attention_target.change"
    audit(actor, action, (target.project_id, None, None), detail)
    return made


def _keeps_key(before: AttentionTarget, target: AttentionTarget) -> bool:
    # The key of a webhook only signs; every other key is shown to the host.
    is_shown = target.way != Way.WEBHOOK
    return before.way == target.way and (not is_shown or before.place == target.place)


@transaction.atomic
def target_delete(target: AttentionTarget, *, actor: str) -> None:
    """Delete a target with its messages, and write the audit row."""
    target.delete()
    audit(actor, "attention_target.delete", (target.project_id, None, None), {"name": target.name})


def opened(target: AttentionTarget) -> Opened:
    """Decrypt the address and the key of a target.

    Both are empty if the server has no key for them any more: every attempt to send fails until the
    target is set anew.
    """
    what = f"the address of target {target.name}"
    address = open_or_none(target.sealed_address, what)
    key = b"" if target.sealed_key is None else open_or_none(target.sealed_key, what)
    return (
        Opened("", "") if address is None or key is None else Opened(address.decode(), key.decode())
    )


def new_key() -> str:
    """A random key, as Standard Webhooks write keys."""
    return KEY_PREFIX + b64encode(secrets.token_bytes(_KEY_BYTES)).decode()


def key_bytes(key: str) -> bytes:
    """The bytes of a key that signs webhooks. Raises UnusableTarget."""
    try:
        found = b64decode(key.removeprefix(KEY_PREFIX), validate=True)
    except NotBase64:
        found = b""
    if not _SHORTEST_KEY <= len(found) <= _LONGEST_KEY:
        raise UnusableTarget(
            f"The key has to be {KEY_PREFIX} and the base64 of {_SHORTEST_KEY} to {_LONGEST_KEY} "
            "random bytes."
        )
    return found


def check_key(way: str, key: str) -> None:
    """Raises UnusableTarget for a key that cannot be used in this way."""
    if way == Way.WEBHOOK:
        key_bytes(key)
    elif not key.isascii() or not key.isprintable():
        raise UnusableTarget("The key has to be printable ASCII.")


def check_kinds(kinds: Sequence[str]) -> None:
    """Raises UnusableTarget unless each kind is one that people can be told."""
    if not isinstance(kinds, list) or not set(map(str, kinds)) <= set(TELLABLE):
        raise UnusableTarget(f"The kinds have to be a list of: {', '.join(TELLABLE)}.")


def check_address(way: str, address: str) -> str:
    """Returns the host of an address, by which the target is shown. Raises UnusableTarget."""
    if way == Way.EMAIL:
        try:
            validate_email(address)
        except ValidationError:
            raise UnusableTarget("The address has to be one e-mail address.") from None
        return address.rpartition("@")[2]
    return _host_of(way, address)


def _host_of(way: str, address: str) -> str:
    is_text = address.isascii() and address.isprintable() and " " not in address
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        host = None
    if not (is_text and host and parts.scheme in ("http", "https")):
        raise UnusableTarget("The address has to be a URL such as https://example.com/hook.")
    if len(address) > MAX_ADDRESS_CHARS or "@" in parts.netloc or parts.fragment:
        raise UnusableTarget("The URL may have no name, password or fragment, and not be longer.")
    if way == Way.NTFY and (parts.query or not parts.path.strip("/")):
        raise UnusableTarget("The URL has to end with the topic, such as https://ntfy.sh/topic.")
    return host
