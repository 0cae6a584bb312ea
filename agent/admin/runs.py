"""The rows of runs. The console shows a run live, and starts, stops, resumes and answers it."""

from django.contrib import admin
from django.urls import reverse

from agent.models import AgentRun
from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin
from projects.admin.parts.careful_filters import AmongNewest
from projects.admin.parts.display import duration, link, text_column


class StopReasonFilter(AmongNewest):
    """Runs that ended for one reason."""

    title, parameter_name = "stop reason", "stop_reason"


@admin.register(AgentRun)
class AgentRunAdmin(ReadOnlyAdmin[AgentRun]):
    """Runs, newest first. Each leads to its live page in the console."""

    change_list_template = "admin/agent/agentrun/change_list.html"
    list_display = (
        "shown_task",
        "state",
        "stop_reason",
        "model",
        "project",
        "lasted",
        "submitted_by",
        "created_at",
    )
    list_filter = ("state", StopReasonFilter, ("project", OfOwnProjects), "created_at")
    list_select_related = ("project",)
    search_fields = ("task", "model", "submitted_by")
    search_help_text = "Task, model, who submitted it, or a whole run id"
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "live_page",
                    "whole_task",
                    "model",
                    "project",
                    "controllers",
                    "approvals",
                    "submitted_by",
                    "created_at",
                )
            },
        ),
        (
            "Budget",
            {
                "fields": (
                    "max_steps",
                    "max_tokens",
                    "max_cost_cents",
                    "max_run_seconds",
                    "output_bytes",
                )
            },
        ),
    )

    @admin.display(description="live")
    def live_page(self, run: AgentRun) -> str:
        """A link to the page of the run, which has its transcript and the buttons."""
        return link(reverse("console:run", args=[run.pk]), "What it says and does")

    shown_task = text_column("task", "task", is_sortable=True)
    whole_task = text_column("task", "task", is_whole=True, keep="\n")

    @admin.display(description="duration")
    def lasted(self, run: AgentRun) -> str:
        """The time from its first worker to its end, or to now."""
        return duration(run.started_at, run.ended_at)
