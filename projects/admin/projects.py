"""Projects: the one thing that is edited here."""

from django.contrib import admin
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest

from projects.admin.access import TypedAdmin, sees_every_project
from projects.models import Project
from projects.selectors import ACTIVE


@admin.register(Project)
class ProjectAdmin(TypedAdmin[Project]):
    """Name, members and limits."""

    list_display = ("name", "controllers_enrolled", "sessions_active", "max_interactive_sessions", "created_at")
    # Counting them undoes the model's own order.
    ordering = ("name",)
    search_fields = ("name",)
    filter_horizontal = ("members",)
    readonly_fields = ("id", "created_at")
    fields = (
        "name",
        "max_interactive_sessions",
        "allowed_commands",
        "allowed_directories",
        "session_limits",
        "strict_seconds",
        "output_retention_seconds",
        "session_retention_seconds",
        "members",
        "id",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        """With the figures of the list, in one query."""
        rows = super().get_queryset(request)
        rows = rows if sees_every_project(request) else rows.filter(members=request.user.pk)
        active = Q(sessions__state__in=ACTIVE)
        return rows.annotate(
            controller_count=Count("controllers", filter=Q(controllers__revoked_at__isnull=True), distinct=True),
            active_count=Count("sessions", filter=active, distinct=True),
        )

    def has_delete_permission(self, _request: HttpRequest, _obj: Project | None = None) -> bool:
        """A project takes its transcripts with it; that is not a click."""
        return False

    @admin.display(description="controllers", ordering="controller_count")
    def controllers_enrolled(self, project: Project) -> int:
        """Controllers that are not revoked."""
        return int(project.controller_count)  # type: ignore[attr-defined]  # annotated above

    @admin.display(description="active sessions", ordering="active_count")
    def sessions_active(self, project: Project) -> int:
        """Sessions that have not ended."""
        return int(project.active_count)  # type: ignore[attr-defined]
