"""The two pages of the second factor: asking for a code, and setting it up."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from console.models import SecondFactor
from console.parts.second_factor import (
    WrongCode,
    app_link,
    confirm_with,
    factor_of,
    key_text,
    missing_factor,
    pass_with,
    remove_with,
)
from projects.conf import conf


@never_cache
@sensitive_post_parameters("code")
def ask_code(request: HttpRequest) -> HttpResponse:
    """Asks a person who showed their password for a code, and leads onward."""
    if not _has_shown_password(request) or missing_factor(request) != "console:ask_code":
        return redirect("console:login")
    context = {"next": _onward(request)}
    if request.method == "POST":
        try:
            pass_with(request, request.POST.get("code", ""))
        except WrongCode as error:
            return render(request, "console/ask_code.html", {**context, "problem": error})
        return redirect(_onward(request))
    return render(request, "console/ask_code.html", context)


@never_cache
@sensitive_post_parameters("code")
def second_factor(request: HttpRequest) -> HttpResponse:
    """Sets the second factor of the person up, or turns it off with one of its codes."""
    if not _has_shown_password(request) or missing_factor(request) == "console:ask_code":
        return redirect("console:login")
    factor = factor_of(request)
    context: dict[str, Any] = {"next": _onward(request)}
    if request.method == "POST":
        try:
            if factor.confirmed_at is None:
                context["codes"] = confirm_with(request, request.POST.get("code", ""))
            elif not conf.require_second_factor:
                remove_with(request, request.POST.get("code", ""))
                return redirect("console:second_factor")
        except WrongCode as error:
            context["problem"] = error
    return render(request, "console/second_factor.html", context | _state(factor_of(request)))


def _state(factor: SecondFactor) -> dict[str, Any]:
    if factor.confirmed_at is not None:
        return {"factor": factor, "is_required": conf.require_second_factor}
    return {"key": key_text(factor), "link": app_link(factor)}


def _has_shown_password(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_staff)


def _onward(request: HttpRequest) -> str:
    """The page that the person wanted; the board if it is none of ours."""
    page = request.POST.get("next") or request.GET.get("next") or "/"
    is_ours = url_has_allowed_host_and_scheme(page, None)
    return page if is_ours else "/"
