"""Pages of projects: their members, limits and policies."""

from typing import TYPE_CHECKING, Any, TypedDict

from django import forms
from django.contrib import admin
from django.db.models import Count, JSONField, Q, QuerySet
from django.http import HttpRequest

from projects.admin.parts.access import TypedAdmin, actor_of, sees_every_project
from projects.admin.parts.careful_filters import CarefulFilters
from projects.admin.parts.changes import changes_of
from projects.admin.parts.counts import active_sessions
from projects.admin.parts.history import AuditHistory
from projects.admin.parts.json_box import JSONBox
from projects.admin.users import users_of
from projects.audit.log import audit
from projects.models import Project


class EmptyJSONField(JSONBox):
    """A JSON field whose empty box stands for null."""

    def prepare_value(self, value: Any) -> Any:
        return "" if value is None else super().prepare_value(value)


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class _ProjectCounts(TypedDict):
    """The counts that the list adds to each row."""

    controller_count: int
    active_count: int


@admin.register(Project)
class ProjectAdmin(CarefulFilters, AuditHistory, TypedAdmin[Project]):
    """Projects, which staff edit here. Nobody deletes one here."""

    list_display = (
        "name",
        "controllers_enrolled",
        "sessions_active",
        "max_interactive_sessions",
        "created_at",
    )
    # Counting them undoes the model's own order.
    ordering = ("name",)
    search_fields = ("name",)
    filter_horizontal = ("members",)
    readonly_fields = ("id", "created_at")
    fields = (
        "name",
        "max_interactive_sessions",
        "default_lifetime_seconds",
        "max_lifetime_seconds",
        "max_pause_minutes",
        "approvals",
        "run_approvals",
        "wants_four_eyes",
        "allowed_commands",
        "allowed_directories",
        "session_limits",
        "strict_seconds",
        "keeps_output",
        "output_retention_seconds",
        "session_retention_seconds",
        "attention_seconds",
        "members",
        "id",
        "created_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Project]:
        rows: QuerySet[Project] = super().get_queryset(request)
        rows = rows if sees_every_project(request) else rows.filter(members=request.user.pk)
        return rows.annotate(
            controller_count=Count("controllers", filter=Q(controllers__revoked_at__isnull=True)),
            active_count=active_sessions("project"),
        )

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offers only users that the editor sees as members."""
        if db_field.name == "members":
            kwargs["queryset"] = users_of(request)
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def formfield_for_dbfield(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Gives lists and objects small boxes, which are empty for null."""
        if isinstance(db_field, JSONField):
            kwargs |= {
                "form_class": EmptyJSONField,
                "widget": forms.Textarea(attrs={"rows": 2, "cols": 80}),
            }
        return super().formfield_for_dbfield(db_field, request, **kwargs)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Audits the project once its members are stored.

        Members that the editor does not see stay members.
        """
        project: Project = form.instance
        hidden = list(project.members.exclude(pk__in=users_of(request))) if change else []
        super().save_related(request, form, formsets, change)
        project.members.add(*hidden)
        detail = changes_of(form, members=project.members.all())
        audit(
            actor_of(request),
            "project.change" if change else "project.create",
            (project.pk, None, None),
            detail,
        )

    def has_delete_permission(self, _request: HttpRequest, _obj: Project | None = None) -> bool:
        # A project takes all its transcripts with it. One click must not do that.
        return False

    @admin.display(description="controllers", ordering="controller_count")
    def controllers_enrolled(self, project: "WithAnnotations[Project, _ProjectCounts]") -> int:
        """The number of controllers that are not revoked."""
        return project.controller_count

    @admin.display(description="active sessions", ordering="active_count")
    def sessions_active(self, project: "WithAnnotations[Project, _ProjectCounts]") -> int:
        """The number of sessions that have not ended."""
        return project.active_count
