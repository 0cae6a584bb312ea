"""Pages of the audit log, and its export. Nobody can edit the log here."""

import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypedDict
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse

from projects.admin.parts.access import (
    ReadOnlyAdmin,
    actor_of,
    projects_of,
    require_still,
    sees_every_project,
)
from projects.admin.parts.careful_filters import AmongNewest, is_choice
from projects.admin.parts.display import detail_text, link, shortened, text_column
from projects.audit.log import SERVER, audit
from projects.audit.proof import audit_export
from projects.models import AuditEvent, CommandSession, Controller, Project
from projects.services import streamed

_EXPORT: Final = ("projects.view_auditevent", "projects.export_auditevent")


class ProjectFilter(admin.SimpleListFilter):
    """Rows of one project, or, for those who see every project, rows of the server itself."""

    title = "project"
    parameter_name = "project"

    def lookups(self, request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        own = [(str(project.pk), project.name) for project in projects_of(request)]
        return (
            [*own, (str(SERVER), "none: the server itself")] if sees_every_project(request) else own
        )

    def queryset(
        self, _request: HttpRequest, queryset: QuerySet[AuditEvent]
    ) -> QuerySet[AuditEvent]:
        return (
            queryset if (chosen := self._chosen()) is None else queryset.filter(project_id=chosen)
        )

    def _chosen(self) -> str | None:
        # CarefulFilters refuses a list whose address names anything but a choice.
        return self.value() if is_choice(self) else None


class HostFilter(ProjectFilter):
    """Rows about one host or its sessions. Revoked hosts can be chosen, too."""

    title = "host"
    parameter_name = "host"

    def lookups(self, request: HttpRequest, _model_admin: Any) -> list[tuple[str, str]]:
        hosts = Controller.objects.filter(project__in=projects_of(request)).select_related(
            "project"
        )
        return [(str(host.pk), f"{host.name} ({host.project})") for host in hosts]

    def queryset(
        self, _request: HttpRequest, queryset: QuerySet[AuditEvent]
    ) -> QuerySet[AuditEvent]:
        if (chosen := self._chosen()) is None:
            return queryset
        sessions = CommandSession.objects.filter(controller_id=chosen)
        of_sessions = Q(
            session_id__in=sessions.values("id"), project_id__in=sessions.values("project_id")
        )
        return queryset.filter(Q(controller_id=chosen) | of_sessions)


class ActionFilter(AmongNewest):
    """Shows the rows of one action."""

    title = parameter_name = "action"
    newest_first = "-id"


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class _Names(TypedDict):
    """The names that the list looks up for each row."""

    project_name: str | None
    host_name: str | None


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin[AuditEvent]):
    """Audit rows, newest first. The export needs ``export_auditevent`` as well."""

    list_display = (
        "created_at",
        "shown_actor",
        "action",
        "project",
        "host",
        "session",
        "shown_detail",
    )
    list_filter = (ProjectFilter, HostFilter, ActionFilter, "created_at")
    search_fields = ("actor", "action")
    search_id = "session_id"
    search_help_text = "Actor, action, or a whole session id"
    fields = (
        "created_at",
        "shown_actor",
        "action",
        "project",
        "project_id",
        "host",
        "controller_id",
        "session",
        "whole_detail",
        "seq",
        "hash",
    )
    show_full_result_count = False
    change_list_template = "admin/projects/auditevent/change_list.html"

    def has_export_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(_EXPORT)

    def get_urls(self) -> list[URLPattern]:
        export = path(
            "export/", self.admin_site.admin_view(self.export), name="projects_auditevent_export"
        )
        return [export, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Adds the button of the export for those who may use it."""
        return super().changelist_view(
            request, {**(extra_context or {}), "may_export": self.has_export_permission(request)}
        )

    def export(self, request: HttpRequest) -> HttpResponseBase:
        """Streams all rows of the projects that the user sees as JSON lines, and audits that."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_export_permission(request):
            raise PermissionDenied
        wanted = sorted(
            set(
                self.get_queryset(request)
                .order_by()
                .values_list("project_id", flat=True)
                .distinct()
            )
        )
        require = partial(require_still, request, wanted, *_EXPORT)
        for project_id in wanted:
            audit(actor_of(request), "audit.export", (project_id, None, None))
        response = StreamingHttpResponse(
            _lines(wanted, require), content_type="application/jsonl; charset=utf-8"
        )
        response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def of_members(self, rows: QuerySet[AuditEvent], user: Any) -> QuerySet[AuditEvent]:
        # An audit row outlives its project, so it has no foreign key to it.
        return rows.filter(project_id__in=Project.objects.filter(members=user).values("id"))

    shown_actor = text_column("actor", "actor", is_sortable=True)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEvent]:
        """Adds the names of projects and hosts that still exist."""
        project = Project.objects.filter(pk=OuterRef("project_id")).values("name")
        host = Controller.objects.filter(pk=OuterRef("controller_id")).values("name")
        rows = super().get_queryset(request)
        return rows.annotate(project_name=Subquery(project[:1]), host_name=Subquery(host[:1]))

    @admin.display(description="project", ordering="project_id")
    def project(self, event: "WithAnnotations[AuditEvent, _Names]") -> str:
        """The name of the project, or its id once the project is gone."""
        if event.project_id == SERVER:
            return "-"
        return shortened(event.project_name or str(event.project_id))

    @admin.display(description="host", ordering="controller_id")
    def host(self, event: "WithAnnotations[AuditEvent, _Names]") -> str:
        """The name of the host, or its id once the host is gone."""
        return shortened(event.host_name or str(event.controller_id or "-"))

    @admin.display(description="session", ordering="session_id")
    def session(self, event: AuditEvent) -> str:
        """A link to the session. The page of a session that is gone says so."""
        if event.session_id is None:
            return "-"
        return link(
            reverse("admin:projects_commandsession_change", args=[event.session_id]),
            str(event.session_id),
        )

    @admin.display(description="detail")
    def shown_detail(self, event: AuditEvent) -> str:
        return shortened(detail_text(event.detail))

    @admin.display(description="detail")
    def whole_detail(self, event: AuditEvent) -> str:
        return detail_text(event.detail)


async def _lines(project_ids: list[UUID], require: Callable[[], None]) -> AsyncIterator[bytes]:
    async for line in streamed(audit_export(project_ids), require):
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"
