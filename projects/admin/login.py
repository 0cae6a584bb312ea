"""Logging in: passwords can be guessed, so wrong ones are counted per user and address, and both outcomes are audited."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.template.response import TemplateResponse

from projects.account_errors import RateLimited
from projects.audit_log import audit
from projects.conf import conf
from projects.peers import peer_of_request
from projects.rate_limits import rate_check, rate_take

_FAILURES = "failed logins"


class LoginForm(AdminAuthenticationForm):
    """Django's own, with a limit. ``retry_after_seconds`` is set where it was reached: also the right password is not tried then."""

    retry_after_seconds = 0

    def clean(self) -> dict[str, Any]:
        """Raises ValidationError."""
        name, peer = str(self.cleaned_data.get("username", "")), peer_of_request(self.request) if self.request else ""
        meter = f"password {peer} {name.casefold()[:64]}"
        try:
            rate_check(meter, conf.login_failures_per_minute, _FAILURES)
        except RateLimited as limit:
            self.retry_after_seconds = limit.retry_after_seconds
            raise ValidationError(f"Too many failed logins. Wait {self.retry_after_seconds} s.", code="rate_limited") from None
        try:
            cleaned: dict[str, Any] = super().clean()
        except ValidationError:
            rate_take(meter, 1, conf.login_failures_per_minute, _FAILURES)
            # A name nobody has may be a password in the wrong field.
            is_known = get_user_model().objects.filter(username=name).exists()
            audit("nobody", "login.failed", (None, None, None), {"user": name if is_known else None, "from": peer})
            raise
        audit(f"admin:{name}", "login", (None, None, None), {"from": peer})
        return cleaned


def login(request: HttpRequest) -> HttpResponseBase:
    """The admin's login page; 429 where the form says that it was too often."""
    response: HttpResponseBase = admin.site.login(request)
    form = (response.context_data or {}).get("form") if isinstance(response, TemplateResponse) else None
    if isinstance(form, LoginForm) and form.retry_after_seconds:
        response.status_code = 429
        response["Retry-After"] = str(form.retry_after_seconds)
    return response
