"""The rights of the person who asks: those of the admin, project by project."""

from collections.abc import Callable, Collection
from functools import wraps
from typing import Concatenate, Final, ParamSpec
from urllib.parse import urlsplit, urlunsplit
from uuid import UUID

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import BadRequest, PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, QueryDict
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from console.parts.second_factor import missing_factor
from projects.admin.parts.access import projects_of
from projects.admin.parts.display import shortened
from projects.models import CommandSession, Controller

SEE_SESSIONS: Final = "projects.view_commandsession"
SEE_SCREENS: Final = "projects.view_transcript"
SEE_HOSTS: Final = "projects.view_controller"
SEE_EVENTS: Final = "projects.view_auditevent"
MANAGE_HOSTS: Final = "projects.manage_controller"
TERMINATE: Final = "projects.terminate_session"
ERASE: Final = "projects.clear_output"
EXPORT_EVENTS: Final = "projects.export_auditevent"
SEE_RUNS: Final = "agent.view_agentrun"
SEE_APPROVALS: Final = "projects.view_approval"
ANSWER: Final = "projects.answer_approval"
TYPE: Final = "projects.take_over_session"
CHANGE_PROJECT: Final = "projects.change_project"

_MOST_CHARS: Final = 10_000
_NOT_ALLOWED: Final = 405

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponseBase]


def page(*rights: str, filters: Collection[str] | None = None) -> Callable[[View[P]], View[P]]:
    """A decorator of a page for staff with all these rights.

    Whoever is not signed in is sent to the login page, and from there to the page they wanted, or
    whose form they sent. A missing right is answered with 403. A NUL in a field is answered with
    400, as is a field of the address that no database looks for: no form sends them.

    ``filters`` are the fields by which the address of a list narrows it. Another field is answered
    with 400: the list must not show what a filter would have left out. None: the page is no list.
    """

    def decorate(view: View[P]) -> View[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
            if not is_staff(request):
                return redirect_to_login(_way_back(request), "console:login")
            if not request.user.has_perms(rights):
                raise PermissionDenied
            if _has_nul(request.GET) or _has_nul(request.POST) or _is_long(request.GET):
                raise BadRequest
            if filters is not None and (others := request.GET.keys() - set(filters)):
                return _unknown_filters(request, others, filters)
            return said_in_words(view)(request, *args, **kwargs)

        return guarded

    return decorate


def _unknown_filters(
    request: HttpRequest, unknown: Collection[str], known: Collection[str]
) -> HttpResponseBase:
    """The answer to an address that narrows a list by what the list does not have."""
    names = sorted(shortened(name) for name in unknown)
    context = {"unknown": names, "known": known, "path": request.path}
    return render(request, "console/unknown_filter.html", context, status=400)


def said_in_words(view: View[P]) -> View[P]:
    """The view, with a page of the console where the address only takes a form.

    A person comes there with a kept or copied address, and a bare 405 says nothing to them.
    """

    @wraps(view)
    def answered(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        answer = view(request, *args, **kwargs)
        if answer.status_code != _NOT_ALLOWED:
            return answer
        page = render(request, "405.html", status=_NOT_ALLOWED)
        page["Allow"] = answer["Allow"]
        return page

    return answered


def _way_back(request: HttpRequest) -> str:
    if request.method in ("GET", "HEAD"):
        return request.get_full_path()
    # No page is behind the address of most forms. The one that holds the form is the referrer.
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, request.get_host()):
        return reverse("console:now")
    return urlunsplit(urlsplit(page)._replace(scheme="", netloc=""))


def _has_nul(fields: QueryDict) -> bool:
    return any("\0" in value for _, values in fields.lists() for value in values)


def _is_long(fields: QueryDict) -> bool:
    return any(len(value) > _MOST_CHARS for _, values in fields.lists() for value in values)


def is_staff(request: HttpRequest) -> bool:
    """Returns True for an active member of staff whose login is complete."""
    is_active_staff = bool(request.user.is_active and request.user.is_staff)
    return is_active_staff and missing_factor(request) is None


def sessions_of(request: HttpRequest) -> QuerySet[CommandSession]:
    """The sessions of the person's projects. None without the right to see sessions."""
    if not request.user.has_perm(SEE_SESSIONS):
        return CommandSession.objects.none()
    return CommandSession.objects.filter(project__in=projects_of(request))


def hosts_of(request: HttpRequest) -> QuerySet[Controller]:
    """The hosts of the person's projects. None without the right to see hosts."""
    if not request.user.has_perm(SEE_HOSTS):
        return Controller.objects.none()
    return Controller.objects.filter(project__in=projects_of(request))


def session_or_404(request: HttpRequest, session_id: UUID) -> CommandSession:
    """The session with its host and project. A session of another project does not exist."""
    rows = sessions_of(request).select_related("controller", "project")
    if (session := rows.filter(pk=session_id).first()) is None:
        raise Http404
    return session
