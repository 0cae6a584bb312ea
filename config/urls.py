"""HTTP routes of Django. ``/mcp``, the probes and the WebSocket are mounted beside them, in ``config.serving``."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from projects.admin.login import login
from projects.enrolment_endpoint import enrol, rotate

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    # In front of Django's own: it answers 429 where the form says that it was too often.
    path("admin/login/", login),
    path("admin/", admin.site.urls),
    path("controllers/enrol", enrol),
    path("controllers/rotate", rotate),
    path("favicon.ico", RedirectView.as_view(url=static("projects/icon.svg"))),
]
