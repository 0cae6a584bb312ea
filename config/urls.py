"""HTTP routes of Django.

``/mcp``, the probes and the WebSocket are mounted beside them, in ``config.serving``.
"""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from projects.admin.login import login, password_change
from projects.enrolment.endpoint import enrol, rotate

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    # Before Django's own login page, to answer 429 after too many wrong passwords.
    path("admin/login/", login),
    path("admin/password_change/", admin.site.admin_view(password_change, cacheable=True)),
    path("admin/", admin.site.urls),
    path("controllers/enrol", enrol),
    path("controllers/rotate", rotate),
    path("favicon.ico", RedirectView.as_view(url=static("projects/icon.svg"))),
]
