"""Who did what, when. Nobody edits it here."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path

from projects.admin.access import ReadOnlyAdmin, actor_of
from projects.admin.display import shortened, visible
from projects.audit_log import audit
from projects.audit_proof import audit_export
from projects.database import at_length
from projects.models import AuditEvent, Project


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin[AuditEvent]):
    """Newest first."""

    list_display = ("created_at", "shown_actor", "action", "session_id", "shown_detail")
    list_filter = ("action", "created_at")
    search_fields = ("actor", "action")
    search_id = "session_id"
    search_help_text = "Actor, action, or a whole session id"
    fields = ("created_at", "shown_actor", "action", "project_id", "controller_id", "session_id", "whole_detail", "seq", "hash")
    show_full_result_count = False
    change_list_template = "admin/projects/auditevent/change_list.html"

    def has_export_permission(self, request: HttpRequest) -> bool:
        """May take the whole log away."""
        return request.user.has_perm("projects.export_auditevent")

    def get_urls(self) -> list[URLPattern]:
        """The export, beside the usual pages."""
        export = path("export/", self.admin_site.admin_view(self.export), name="projects_auditevent_export")
        return [export, *super().get_urls()]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """With the way to the export, for whom it is open."""
        return super().changelist_view(request, {**(extra_context or {}), "may_export": self.has_export_permission(request)})

    def export(self, request: HttpRequest) -> HttpResponseBase:
        """All rows of the projects the user sees, as JSON lines. It is audited itself."""
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.has_export_permission(request):
            raise PermissionDenied
        wanted = sorted(set(self.get_queryset(request).order_by().values_list("project_id", flat=True).distinct()))
        for project_id in wanted:
            audit(actor_of(request), "audit.export", (project_id, None, None))
        response = StreamingHttpResponse(_lines(wanted), content_type="application/jsonl; charset=utf-8")
        response["Content-Disposition"] = 'attachment; filename="audit.jsonl"'
        response["X-Content-Type-Options"] = "nosniff"
        return response

    def of_members(self, rows: QuerySet[AuditEvent], user: Any) -> QuerySet[AuditEvent]:
        """An audit row outlives its project, so it names it by id only."""
        return rows.filter(project_id__in=Project.objects.filter(members=user).values("id"))

    @admin.display(description="actor", ordering="actor")
    def shown_actor(self, event: AuditEvent) -> str:
        """Who."""
        return shortened(event.actor)

    @admin.display(description="detail")
    def shown_detail(self, event: AuditEvent) -> str:
        """The beginning of it."""
        return shortened(_as_text(event.detail))

    @admin.display(description="detail")
    def whole_detail(self, event: AuditEvent) -> str:
        """All of it."""
        return visible(_as_text(event.detail))


async def _lines(project_ids: list[UUID]) -> AsyncIterator[bytes]:
    lines = audit_export(project_ids)
    while (line := await at_length(next, lines, None)) is not None:
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _as_text(detail: Any) -> str:
    return json.dumps(detail, ensure_ascii=False, sort_keys=True) if detail else "-"
