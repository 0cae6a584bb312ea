"""The login of the admin and its page for a new password, with a limit of attempts.

Each attempt is counted before its password is looked at, and audited whatever its outcome.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm, AdminPasswordChangeForm
from django.contrib.auth import get_user_model
from django.contrib.auth.views import PasswordChangeView
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse_lazy

from projects.accounts.client_address import peer_of_request
from projects.accounts.errors import RateLimited
from projects.accounts.guesses import PasswordAttempt
from projects.audit.log import audit, person
from projects.models import Restore

_UNCONFIRMED = (
    "The database was restored. Nobody can log in before an administrator has run "
    "manage.py confirm_restore."
)


class TooManyAttempts(ValidationError):
    """The password was not looked at: too many attempts came before."""

    def __init__(self, text: str, retry_after_seconds: int) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(f"{text} Wait {retry_after_seconds} s.", code="rate_limited")


@contextmanager
def _counted(kind: str, name: str, peer: str, *, too_many: str) -> Iterator[None]:
    """Counts and audits the attempt that the block makes.

    A ValidationError out of the block is a failed attempt. Raises TooManyAttempts before the block.
    """
    attempt = PasswordAttempt(name, peer)
    try:
        attempt.take()
    except RateLimited as limit:
        _audit_failure(f"{kind}.throttled", name, peer)
        raise TooManyAttempts(too_many, limit.retry_after_seconds) from None
    try:
        yield
    except ValidationError:
        _audit_failure(f"{kind}.failed", name, peer)
        raise
    attempt.forgive()


class LoginForm(AdminAuthenticationForm):
    """Django's form with a limit of attempts.

    ``retry_after_seconds`` is not 0 once the limit is reached. Even the right password is refused
    then.
    """

    retry_after_seconds = 0

    def clean(self) -> dict[str, Any]:
        name = self.cleaned_data.get("username")
        peer = peer_of_request(self.request) if self.request else ""
        if not name or not self.cleaned_data.get("password"):
            # The fields say what is missing; no password is looked at.
            return dict(self.cleaned_data)
        if Restore.objects.filter(confirmed_at__isnull=True).exists():
            raise ValidationError(_UNCONFIRMED, code="restored")
        try:
            with _counted("login", name, peer, too_many="Too many failed logins."):
                cleaned: dict[str, Any] = super().clean()
        except TooManyAttempts as error:
            self.retry_after_seconds = error.retry_after_seconds
            raise
        audit(person(name), "login", (None, None, None), {"from": peer})
        return cleaned


class OwnPasswordForm(AdminPasswordChangeForm):
    """The form with which users change their own password.

    It counts attempts as well: whoever finds a browser open could guess the old password there.
    """

    def clean_old_password(self) -> str:
        name = self.user.get_username()
        with _counted("password", name, "", too_many="Too many wrong passwords."):
            old: str = super().clean_old_password()
        return old

    def save(self, commit: bool = True) -> Any:
        name = self.user.get_username()
        with transaction.atomic():
            saved = super().save(commit)
            audit(person(name), "password.change", (None, None, None), {"user": name})
            return saved


def _audit_failure(action: str, name: str, peer: str) -> None:
    # A name that no user has may be a password that was typed into the wrong field.
    is_known = get_user_model().objects.filter(username=name).exists()
    audit("nobody", action, (None, None, None), {"user": name if is_known else None, "from": peer})


def password_change(request: HttpRequest) -> HttpResponseBase:
    """The admin's page on which users change their own password."""
    view = PasswordChangeView.as_view(
        form_class=OwnPasswordForm,
        success_url=reverse_lazy("admin:password_change_done"),
        extra_context=admin.site.each_context(request),
    )
    return view(request)
