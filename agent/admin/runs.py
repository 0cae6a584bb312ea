"""Pages of runs: a live view, and forms to start, stop, resume and answer them."""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from agent import services
from agent.models import AgentApproval, AgentRun, Approvals
from agent.views.rendering import approval_line, sessions_of, used_line, whole_run
from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin, actor_of, projects_of
from projects.admin.parts.careful_filters import AmongNewest
from projects.admin.parts.display import duration, text_column
from projects.audit.log import audit
from projects.errors.base import ControllerActionError
from projects.models import Project


class NewRunForm(forms.Form):
    """The form that starts a run in one of the user's own projects."""

    project = forms.ModelChoiceField(queryset=Project.objects.none())
    task = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}), max_length=services.MOST_TASK_CHARS
    )
    model = forms.CharField(
        required=False,
        help_text="openai:NAME, anthropic:NAME or scripted:demo. Empty: the server's default.",
    )
    controllers = forms.CharField(
        required=False,
        help_text="Names, separated by spaces. Empty: every controller of the project.",
    )
    approvals = forms.ChoiceField(
        required=False,
        choices=[("", "the project's policy"), *Approvals.choices],
        help_text="The calls that wait for a person's approval.",
    )
    max_steps = forms.IntegerField(
        required=False,
        help_text="How often the model may answer. Empty, here and below: the server's default.",
    )
    max_tokens = forms.IntegerField(required=False)
    max_cost_cents = forms.IntegerField(
        required=False, label="Max cost (cents)", help_text="0: no limit."
    )
    max_run_seconds = forms.FloatField(required=False, label="Max run time (seconds)")

    def __init__(self, projects: QuerySet[Project], data: Any) -> None:
        super().__init__(data)
        self.fields["project"] = forms.ModelChoiceField(queryset=projects)

    def clean_controllers(self) -> list[str]:
        return str(self.cleaned_data["controllers"]).split()


class StopReasonFilter(AmongNewest):
    """Runs that ended for one reason."""

    title, parameter_name = "stop reason", "stop_reason"


@admin.register(AgentRun)
class AgentRunAdmin(ReadOnlyAdmin[AgentRun]):
    """Runs, newest first.

    To read the transcript of a run needs ``view_run_transcript``, to act on it ``control_run``.
    """

    change_form_template = "admin/agent/agentrun/change_form.html"
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

    def get_urls(self) -> list[URLPattern]:
        pages: tuple[tuple[str, Any, str], ...] = (
            ("new/", self.new_run, "new"),
            ("<uuid:run_id>/live/", self.live, "live"),
            ("<uuid:run_id>/stop/", self.stop, "stop"),
            ("<uuid:run_id>/resume/", self.resume, "resume"),
            ("<uuid:run_id>/answer/<int:approval_id>/", self.answer, "answer"),
        )
        ours = [
            path(route, self.admin_site.admin_view(view), name=f"agent_agentrun_{name}")
            for route, view, name in pages
        ]
        return [*ours, *super().get_urls()]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> Any:
        return super().changelist_view(
            request, {**(extra_context or {}), "may_control": self._may_control(request)}
        )

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Shows the run live. Reading its transcript leaves an audit row."""
        run = self.get_object(request, object_id)
        context = extra_context or {}
        if run is not None:
            if self._may_read(request):
                about = (run.project_id, None, None)
                audit(actor_of(request), "agent_run.view", about, {"run": str(run.id)})
            context = {**context, **self._shown(request, run)}
        return super().change_view(request, object_id, form_url, context)

    def live(self, request: HttpRequest, run_id: Any) -> HttpResponse:
        """The part of the page that changes; 204 if the page has this version already."""
        shown = self._shown(request, self._run(request, run_id))
        if request.GET.get("have") == shown["version"]:
            return HttpResponse(status=204)
        return TemplateResponse(request, "admin/agent/agentrun/live.html", shown)

    def new_run(self, request: HttpRequest) -> HttpResponse:
        """The form that starts a run."""
        if not self._may_control(request):
            raise PermissionDenied
        form = NewRunForm(projects_of(request), request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                run = services.run_submit(actor=actor_of(request), **form.cleaned_data)
                return redirect("admin:agent_agentrun_change", run.pk)
            except ControllerActionError as error:
                form.add_error(None, error.line())
        context = {
            **self.admin_site.each_context(request),
            "title": "Start a run",
            "form": form,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/agent/agentrun/new.html", context)

    def stop(self, request: HttpRequest, run_id: Any) -> HttpResponse:
        return self._acted(
            request,
            run_id,
            lambda run: services.run_stop(run_id=run.pk, actor=actor_of(request)),
            "The run is being stopped.",
        )

    def resume(self, request: HttpRequest, run_id: Any) -> HttpResponse:
        """Resumes a run that is over, with the message to the model from the form."""
        said = request.POST.get("said", "")
        return self._acted(
            request,
            run_id,
            lambda run: services.run_resume(run_id=run.pk, actor=actor_of(request), said=said),
            "The run resumes.",
        )

    def answer(self, request: HttpRequest, run_id: Any, approval_id: int) -> HttpResponse:
        """Approves or denies one call of the run."""

        def act(run: AgentRun) -> None:
            if not run.approval_requests.filter(pk=approval_id).exists():
                raise Http404
            services.approval_answer(
                approval_id=approval_id,
                is_approved=request.POST.get("answer") == "approve",
                actor=actor_of(request),
                reason=request.POST.get("reason", ""),
            )

        return self._acted(request, run_id, act, "Your answer was saved.")

    def _acted(
        self, request: HttpRequest, run_id: Any, act: Callable[[AgentRun], object], done: str
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        run = self._run(request, run_id)
        if not self._may_control(request):
            raise PermissionDenied
        try:
            act(run)
            self.message_user(request, done, messages.SUCCESS)
        except ControllerActionError as error:
            self.message_user(request, error.line(), messages.ERROR)
        return redirect(reverse("admin:agent_agentrun_change", args=[run.pk]))

    def _run(self, request: HttpRequest, run_id: Any) -> AgentRun:
        run: AgentRun | None = (
            self.get_object(request, str(run_id)) if self.has_view_permission(request) else None
        )
        if run is None:
            raise Http404
        return run

    def _shown(self, request: HttpRequest, run: AgentRun) -> dict[str, Any]:
        approvals = list(run.approval_requests.order_by("id"))
        pending = [
            one
            for one in approvals
            if one.answer == AgentApproval.Answer.PENDING and run.ended_at is None
        ]
        may_read = self._may_read(request)
        steps = list(run.steps.order_by("number"))
        lines = list(whole_run(run, steps, approvals)) if may_read else []
        sessions = sessions_of(steps)
        used = used_line(run, steps=len(steps))
        state = repr((run.state, used, [one.pk for one in pending], sessions, lines))
        return {
            "run": run,
            "used": used,
            "may_read": may_read,
            "may_control": self._may_control(request),
            "is_over": run.state in services.OVER,
            "lines": lines,
            "sessions": sessions,
            "pending": [(one, approval_line(one).text) for one in pending],
            "version": sha256(state.encode()).hexdigest()[:16],
        }

    def _may_control(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agent.control_run")

    def _may_read(self, request: HttpRequest) -> bool:
        return request.user.has_perm("agent.view_run_transcript")

    shown_task = text_column("task", "task", is_sortable=True)
    whole_task = text_column("task", "task", is_whole=True, keep="\n")

    @admin.display(description="duration")
    def lasted(self, run: AgentRun) -> str:
        """The time from its first worker to its end, or to now."""
        return duration(run.started_at, run.ended_at)
