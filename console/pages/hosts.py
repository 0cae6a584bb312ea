"""The list of hosts, and the enrolment of another one."""

from typing import Final
from urllib.parse import urlsplit

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db.models import Max, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST

from console.parts.access import MANAGE_HOSTS, SEE_HOSTS, hosts_of, page
from console.parts.hosts import in_words
from projects.admin.parts.access import actor_of, projects_of
from projects.admin.parts.counts import active_sessions
from projects.enrolment.codes import CODE_MINUTES, enrolment_code_create
from projects.enrolment.installer import has_bundles, origin_of
from projects.models import Controller
from projects.reads.hosts import STATES, in_state

_MOST: Final = 500


@page(SEE_HOSTS, filters=("q", "state"))
def hosts(request: HttpRequest) -> HttpResponse:
    """Shows the hosts of the person's projects. ``?q=`` and ``?state=`` narrow the list."""
    rows = hosts_of(request)
    wanted, state = request.GET.get("q", ""), request.GET.get("state", "")
    # A filter that is not known must not show what another one would have left out.
    is_known = state in {"", *STATES}
    if not is_known:
        rows = rows.none()
    if wanted:
        rows = rows.filter(
            Q(name__icontains=wanted)
            | Q(hostname__icontains=wanted)
            | Q(platform__icontains=wanted)
            | Q(labels__icontains=wanted)
        )
    shown = with_facts(in_state(rows, state).select_related("project"))[:_MOST]
    return render(
        request,
        "console/hosts.html",
        {
            "hosts": [in_words(host) for host in shown],
            "most": _MOST,
            "q": wanted,
            "state": state,
            "states": STATES,
            "is_known": is_known,
            "projects": projects_of(request) if request.user.has_perm(MANAGE_HOSTS) else (),
        },
        status=200 if is_known else 400,
    )


def with_facts(rows: QuerySet[Controller]) -> QuerySet[Controller]:
    """Adds the number of active sessions, and when the newest valid credential was made."""
    valid = Q(credentials__revoked_at__isnull=True)
    return rows.annotate(
        active_count=active_sessions("controller"),
        credential_at=Max("credentials__created_at", filter=valid),
    ).order_by("name")


@page(MANAGE_HOSTS)
@require_POST
def enrol(request: HttpRequest) -> HttpResponse:
    """Makes a code, and shows once the line that enrols the host with it."""
    name = request.POST.get("name", "").strip()
    try:
        project = get_object_or_404(projects_of(request), pk=request.POST.get("project", ""))
        row, code = enrolment_code_create(
            project=project,
            name=name,
            labels=request.POST.get("labels", ""),
            actor=actor_of(request),
        )
    except (ValueError, ValidationError) as error:
        said = error.messages if isinstance(error, ValidationError) else [str(error)]
        messages.error(request, f"No code was made: {' '.join(said)}.")
        return redirect("console:hosts")
    line = f"holdline-controller enroll --server {_socket(request)} --code {code}"
    install = f"curl -fsSL {origin_of(request)}/install.sh | sudo sh -s -- --code {code}"
    context = {
        "code": row,
        "install": install if has_bundles() else None,
        "line": line,
        "minutes": f"{CODE_MINUTES:g}",
    }
    return render(request, "console/enrol.html", context)


def _socket(request: HttpRequest) -> str:
    """The address that a host connects to."""
    parts = urlsplit(origin_of(request))
    return f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}/ws/controller/"
