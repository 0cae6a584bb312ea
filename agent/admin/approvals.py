"""Pages of the approvals that runs ask for, and of each project's policy for them."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse

from agent.models import AgentApproval, ProjectApprovals
from agent.views.rendering import call_line
from projects.admin.parts.access import (
    OwnProjects,
    ReadOnlyAdmin,
    TypedAdmin,
    actor_of,
    projects_of,
)
from projects.admin.parts.display import link, shortened, text_column
from projects.audit.log import audit


@admin.register(AgentApproval)
class AgentApprovalAdmin(ReadOnlyAdmin[AgentApproval]):
    """Approvals of all runs, newest first. A person answers one on the page of its run."""

    members_path = "run__project__members"
    list_display = ("shown_call", "risk", "answer", "answered_by", "answer_page", "created_at")
    list_display_links = ("shown_call",)
    list_filter = ("answer", "risk", "created_at")
    list_select_related = ("run",)
    fields = (
        "answer_page",
        "shown_call",
        "risk",
        "shown_reason",
        "answer",
        "answered_by",
        "shown_answer",
        "created_at",
        "answered_at",
    )
    ordering = ("-id",)

    @admin.display(description="call")
    def shown_call(self, approval: AgentApproval) -> str:
        return call_line({"name": approval.tool, "arguments": approval.arguments}).text

    @admin.display(description="run")
    def answer_page(self, approval: AgentApproval) -> str:
        """A link to the page of the run, which has the buttons."""
        is_open = approval.answer == AgentApproval.Answer.PENDING
        page = reverse("console:run", args=[approval.run_id])
        return link(page, "Approve or deny" if is_open else shortened(approval.run.task, 40))

    shown_reason = text_column("risk_reason", "why", is_whole=True)
    shown_answer = text_column("reason", "reason given", is_whole=True)


@admin.register(ProjectApprovals)
class ProjectApprovalsAdmin(OwnProjects, TypedAdmin[ProjectApprovals]):
    """The policy of a project: the calls of its runs that wait for a person."""

    list_display = ("project", "approvals")

    def get_queryset(self, request: HttpRequest) -> QuerySet[ProjectApprovals]:
        return super().get_queryset(request).filter(project__in=projects_of(request))

    def get_readonly_fields(
        self, _request: HttpRequest, obj: ProjectApprovals | None = None
    ) -> tuple[str, ...]:
        # A policy cannot move to another project: that would leave the first project without one.
        return () if obj is None else ("project",)

    def save_model(
        self, request: HttpRequest, obj: ProjectApprovals, form: Any, change: Any
    ) -> None:
        super().save_model(request, obj, form, change)
        before = {"before": form.initial.get("approvals")} if change else {}
        _audit(request, "agent_policy.set", obj, **before)

    def delete_model(self, request: HttpRequest, obj: ProjectApprovals) -> None:
        """Deletes the policy, so that the setting of the server holds for the project."""
        _audit(request, "agent_policy.delete", obj)
        super().delete_model(request, obj)


def _audit(request: HttpRequest, action: str, policy: ProjectApprovals, **detail: object) -> None:
    about = (policy.project_id, None, None)
    audit(actor_of(request), action, about, {"approvals": policy.approvals, **detail})
