"""HTTP routes of Django.

``/mcp``, the probes and the WebSocket are mounted beside them, in ``config.serving``.
"""

from django.contrib import admin
from django.templatetags.static import static
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from config.recordings import recording
from config.static_of_others import STATIC_OF_A_RELEASE, not_here
from console.login.views import admin_login
from projects.admin.login import password_change
from projects.enrolment.endpoint import enrol, rotate
from projects.enrolment.installer import bundle, install_script

handler500 = "console.parts.failed_request.failed"
urlpatterns = [
    # Before Django's own login page: there is one way to log in.
    path("admin/login/", admin_login),
    path("admin/password_change/", admin.site.admin_view(password_change, cacheable=True)),
    path("admin/", admin.site.urls),
    path("controllers/enrol", enrol),
    path("controllers/rotate", rotate),
    path("install.sh", install_script),
    path("bundle/<str:name>", bundle),
    path("recordings/<uuid:session_id>", recording),
    re_path(STATIC_OF_A_RELEASE, not_here),
    path("favicon.ico", RedirectView.as_view(url=static("projects/icon.svg"))),
    path("", include("console.urls")),
]
