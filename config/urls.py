"""HTTP routes of Django. ``/mcp`` and the WebSocket are mounted beside them, in ``config.asgi``."""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import path
from django.views.generic import RedirectView

from config.health import healthz, readyz

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("favicon.ico", RedirectView.as_view(url=static("projects/icon.svg"))),
    path("healthz", healthz),
    path("readyz", readyz),
]
