"""Who did what, when. Nobody edits it here."""

import json
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet

from projects.admin.access import ReadOnlyAdmin
from projects.admin.display import shortened, visible
from projects.models import AuditEvent, Project


@admin.register(AuditEvent)
class AuditEventAdmin(ReadOnlyAdmin[AuditEvent]):
    """Newest first."""

    list_display = ("created_at", "shown_actor", "action", "session_id", "shown_detail")
    list_filter = ("action", "created_at")
    search_fields = ("actor", "action")
    search_id = "session_id"
    search_help_text = "Actor, action, or a whole session id"
    fields = ("created_at", "shown_actor", "action", "project_id", "controller_id", "session_id", "whole_detail")
    show_full_result_count = False

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


def _as_text(detail: Any) -> str:
    return json.dumps(detail, ensure_ascii=False, sort_keys=True) if detail else "-"
