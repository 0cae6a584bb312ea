"""The second factor: codes of an authenticator app (TOTP, RFC 6238), and recovery codes.

The key is sealed in the database. A code is accepted once, and for one period before and after its
own. After a few wrong codes each further attempt has to wait, twice as long every time.
"""

import secrets
from base64 import b32encode
from collections.abc import Callable, Iterator
from datetime import timedelta
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import transaction
from django.http import HttpRequest

from console.models import SecondFactor
from projects.accounts.client_address import peer_of_request
from projects.audit.log import audit, person
from projects.conf import conf
from projects.storage import clock
from projects.storage.sealing import open_or_none, seal

_DIGITS: Final = 6
_PERIOD_SECONDS: Final = 30
_KEY_BYTES: Final = 20
_RECOVERY_CODES: Final = 10
_FREE_FAILURES: Final = 5
_LONGEST_PAUSE: Final = timedelta(minutes=15)
_PASSED: Final = "second_factor"
_OWN_KEY: Final = "second_factor_key"
"""The key that this login has been shown, sealed, until it confirms it."""


class WrongCode(Exception):
    """The code is wrong, or was used before, or nobody may try now."""


def missing_factor(request: HttpRequest) -> str | None:
    """The name of the page that completes the login of this person; None if it is complete."""
    confirmed_at = _confirmed_at(request.user)
    if confirmed_at is None:
        return "console:second_factor" if conf.require_second_factor else None
    session: Any = getattr(request, "session", {})
    return None if session.get(_PASSED) == confirmed_at.isoformat() else "console:ask_code"


def _confirmed_at(user: Any) -> Any:
    factors = SecondFactor.objects.filter(user_id=user.pk, confirmed_at__isnull=False)
    return factors.values_list("confirmed_at", flat=True).first()


def factor_of(request: HttpRequest) -> SecondFactor:
    """The factor of the person, or the one that they set up, with the key of this login.

    Until it is confirmed each login has a key of its own. Somebody else who knows the password, and
    so the key of one login, does not know what another one confirms.
    """
    user: Any = request.user
    new = {"sealed_key": seal(secrets.token_bytes(_KEY_BYTES))}
    factor, _is_new = SecondFactor.objects.get_or_create(user=user, defaults=new)
    if factor.confirmed_at is None:
        factor.sealed_key = request.session.get(_OWN_KEY, "").encode()
        if not factor.sealed_key or _key(factor) is None:
            factor.sealed_key = new["sealed_key"]
            request.session[_OWN_KEY] = factor.sealed_key.decode()
    return factor


def key_text(factor: SecondFactor) -> str:
    """The key as an authenticator app takes it."""
    return b32encode(_key(factor) or b"").decode()


def app_link(factor: SecondFactor) -> str:
    """The address that opens an authenticator app on the same device."""
    return _totp(factor).get_provisioning_uri(factor.user.get_username(), "Holdline")


def pass_with(request: HttpRequest, code: str) -> None:
    """Completes the login of this session with a code of the app, or a recovery code.

    Raises WrongCode.
    """
    _remember(request, _attempt(request, code).confirmed_at)


def confirm_with(request: HttpRequest, code: str) -> list[str]:
    """Turns the factor on with its first code. Returns the recovery codes, which no page repeats.

    Raises WrongCode.
    """
    codes = [f"{secrets.token_hex(4)}-{secrets.token_hex(4)}" for _ in range(_RECOVERY_CODES)]

    def confirm(factor: SecondFactor) -> None:
        factor.confirmed_at = clock.now()
        factor.recovery = [_digest(one) for one in codes]
        factor.save()
        _audit(request, "second_factor.enrol")

    factor = _attempt(request, code, confirm, is_first=True)
    _remember(request, factor.confirmed_at)
    request.session.pop(_OWN_KEY, None)
    return codes


def remove_with(request: HttpRequest, code: str) -> None:
    """Turns the factor of the person off. Raises WrongCode."""

    def remove(factor: SecondFactor) -> None:
        factor.delete()
        _audit(request, "second_factor.remove")

    _attempt(request, code, remove)


def _attempt(
    request: HttpRequest,
    code: str,
    then: Callable[[SecondFactor], object] = SecondFactor.save,
    *,
    is_first: bool = False,
) -> SecondFactor:
    """Uses a code up and returns the factor, on which ``then`` was called under its lock.

    ``is_first``: the code confirms the factor, which another login may have done meanwhile. Raises
    WrongCode, and the failure is counted.
    """
    spelled = code.replace(" ", "").lower()
    user: Any = request.user
    with transaction.atomic():
        factor = SecondFactor.objects.select_for_update().filter(user_id=user.pk).first()
        if factor is not None and (factor.confirmed_at is None) is not is_first:
            raise WrongCode("This was done in another login. Load the page again.")
        if factor is not None and is_first:
            factor.sealed_key = request.session.get(_OWN_KEY, "").encode()
        is_paused = factor is not None and _is_paused(factor)
        if factor is not None and not is_paused and _is_right(factor, spelled):
            factor.failures, factor.paused_until = 0, None
            then(factor)
            return factor
        if factor is not None and not is_paused:
            _count_failure(factor)
        _audit(request, "second_factor.throttled" if is_paused else "second_factor.failed")
    if is_paused:
        raise WrongCode("Too many wrong codes. Wait a few minutes.")
    raise WrongCode("This code is wrong, or was used before. Wait for the next one.")


def _is_paused(factor: SecondFactor) -> bool:
    now, until = clock.now(), factor.paused_until
    # A pause that ends later than the longest one began before the clock was put back.
    longest = _LONGEST_PAUSE + timedelta(seconds=clock.JUMP_SECONDS)
    return until is not None and now < until <= now + longest


def _is_right(factor: SecondFactor, code: str) -> bool:
    """Returns True for a code that is right, and changes ``factor`` so that it is used up."""
    last_step = 0 if _is_of_another_time(factor.last_step) else factor.last_step
    for step, expected in _codes_now(factor):
        if step > last_step and compare_digest(expected, code.encode()):
            factor.last_step = step
            return True
    digest = _digest(code)
    if digest in factor.recovery:
        factor.recovery = [one for one in factor.recovery if one != digest]
        return True
    return False


def _codes_now(factor: SecondFactor) -> Iterator[tuple[int, bytes]]:
    """The codes of this period, of the one before and of the one after, for clocks that differ."""
    if _key(factor) is None:
        return
    totp, now = _totp(factor), _step_now()
    for step in (now - 1, now, now + 1):
        yield step, totp.generate(step * _PERIOD_SECONDS)


def _step_now() -> int:
    return int(clock.now().timestamp()) // _PERIOD_SECONDS


def _is_of_another_time(step: int) -> bool:
    """Returns True for a step whose code was used while the clock was ahead.

    Until then every code of the app would count as used.
    """
    return (step - 1 - _step_now()) * _PERIOD_SECONDS > clock.JUMP_SECONDS


def _key(factor: SecondFactor) -> bytes | None:
    """The key; None if the server cannot decrypt it, so that only recovery codes are right."""
    return open_or_none(factor.sealed_key, f"the second factor of {factor.user.get_username()}")


def _totp(factor: SecondFactor) -> TOTP:
    # SHA-1 is what every authenticator app understands; HMAC does not need a stronger hash.
    return TOTP(_key(factor) or b"", _DIGITS, SHA1(), _PERIOD_SECONDS)  # noqa: S303 # nosec B303


def _count_failure(factor: SecondFactor) -> None:
    factor.failures += 1
    beyond = factor.failures - _FREE_FAILURES
    if beyond >= 0:
        pause = timedelta(seconds=_PERIOD_SECONDS * 2 ** min(beyond, 10))
        factor.paused_until = clock.now() + min(pause, _LONGEST_PAUSE)
    factor.save()


def _digest(code: str) -> str:
    return sha256(code.encode()).hexdigest()


def _remember(request: HttpRequest, confirmed_at: Any) -> None:
    # The session gets a new key: who knew the old one is not carried along.
    request.session.cycle_key()
    request.session[_PASSED] = confirmed_at.isoformat()


def _audit(request: HttpRequest, action: str) -> None:
    detail = {"from": peer_of_request(request)}
    audit(person(request.user.get_username()), action, (None, None, None), detail)
