"""What runs ask, over all of them, and each project's policy."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from agent.models import AgentApproval, ProjectApprovals
from agent.rendering import call_line
from projects.admin.access import ReadOnlyAdmin, TypedAdmin, actor_of, projects_of, sees_every_project
from projects.admin.display import visible
from projects.audit_log import audit


@admin.register(AgentApproval)
class AgentApprovalAdmin(ReadOnlyAdmin[AgentApproval]):
    """Newest first; answered on the page of the run."""

    members_path = "run__project__members"
    list_display = ("shown_call", "risk", "answer", "answered_by", "run", "created_at")
    list_filter = ("answer", "risk", "created_at")
    list_select_related = ("run",)
    fields = ("run", "shown_call", "risk", "shown_reason", "answer", "answered_by", "shown_answer", "created_at", "answered_at")
    ordering = ("-id",)

    @admin.display(description="call")
    def shown_call(self, approval: AgentApproval) -> str:
        """Tool and arguments."""
        return call_line({"name": approval.tool, "arguments": approval.arguments}).text

    @admin.display(description="why")
    def shown_reason(self, approval: AgentApproval) -> str:
        """The part of the call that made it risky."""
        return visible(approval.risk_reason) or "-"

    @admin.display(description="reason given")
    def shown_answer(self, approval: AgentApproval) -> str:
        """What the model is told with a denial."""
        return visible(approval.reason) or "-"


@admin.register(ProjectApprovals)
class ProjectApprovalsAdmin(TypedAdmin[ProjectApprovals]):
    """Which calls of a project's runs wait for a person."""

    list_display = ("project", "approvals")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProjectApprovals]:
        """Of the user's projects."""
        rows = super().get_queryset(request)
        return rows if sees_every_project(request) else rows.filter(project__members=request.user.pk)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Of the user's own projects."""
        if db_field.name == "project":
            kwargs["queryset"] = projects_of(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: ProjectApprovals, form: Any, change: Any) -> None:
        """Leaves an audit row."""
        super().save_model(request, obj, form, change)
        audit(actor_of(request), "agent_policy.set", (obj.project_id, None, None), {"approvals": obj.approvals})
