"""The login page of the console and of the admin: one form, one limit of attempts."""

from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.views import LoginView, LogoutView
from django.http import HttpRequest
from django.http.response import HttpResponseBase, HttpResponseRedirect
from django.urls import reverse

from console.parts.access import said_in_words
from console.parts.second_factor import missing_factor
from projects.admin.login import LoginForm


class _Login(LoginView):
    """Django's view. Its status is 429 once there were too many attempts."""

    template_name = "console/login.html"
    authentication_form = LoginForm
    next_page = "console:now"

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if request.method == "GET" and request.user.is_active and request.user.is_staff:
            step = missing_factor(request)
            onward = self.get_success_url()
            return HttpResponseRedirect(
                f"{reverse(step)}?{urlencode({'next': onward})}" if step else onward
            )
        return super().dispatch(request, *args, **kwargs)

    def form_invalid(self, form: Any) -> Any:
        response = super().form_invalid(form)
        if seconds := form.retry_after_seconds:
            response.status_code = 429
            response["Retry-After"] = str(seconds)
        return response


login = _Login.as_view()
admin_login = _Login.as_view(next_page="admin:index")
logout = said_in_words(LogoutView.as_view(next_page="console:login"))
