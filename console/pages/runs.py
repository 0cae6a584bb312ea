"""The runs of language models, those that wait for a person first, and the form of a new one."""

from typing import Any, Final
from uuid import uuid4

from django import forms
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from agent import services
from agent.models import AgentRun
from console.pages.run import CONTROL
from console.parts.access import SEE_RUNS, page
from console.parts.shares import fair_share
from projects.admin.parts.access import actor_of, projects_of
from projects.errors.base import ControllerActionError
from projects.models import ApprovalPolicy, Project

_MOST: Final = 100


class NewRunForm(forms.Form):
    """The form that starts a run in one of the user's own projects."""

    # A form that is sent twice, by a second click or by the browser, starts one run.
    run_id = forms.UUIDField(required=False, initial=uuid4, widget=forms.HiddenInput)
    project = forms.ModelChoiceField(queryset=Project.objects.none())
    task = forms.CharField(
        widget=forms.Textarea(attrs={"rows": 4}), max_length=services.MOST_TASK_CHARS
    )
    model = forms.CharField(
        required=False,
        max_length=services.MOST_MODEL_CHARS,
        help_text="openai:NAME, anthropic:NAME or scripted:demo. Empty: the server's default.",
    )
    controllers = forms.CharField(
        required=False,
        label="Hosts",
        help_text="Names, separated by spaces. Empty: every host of the project.",
    )
    approvals = forms.ChoiceField(
        required=False,
        choices=[("", "the project's policy"), *ApprovalPolicy.choices],
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
        only = projects.get() if projects.count() == 1 else None
        self.fields["project"] = forms.ModelChoiceField(queryset=projects, initial=only)

    def clean_controllers(self) -> list[str]:
        """The names of the hosts that the run may use."""
        return str(self.cleaned_data["controllers"]).split()


@page(SEE_RUNS, filters=())
def runs(request: HttpRequest) -> HttpResponse:
    """Shows the runs of the person's projects. Each leads to its live page."""
    rows = AgentRun.objects.filter(project__in=projects_of(request)).select_related("project")
    newest = rows.order_by("-created_at")[:_MOST]
    waiting = fair_share(rows.filter(state=AgentRun.State.WAITING), "-created_at", _MOST)
    context = {"waiting": waiting, "runs": newest, "most": _MOST}
    return render(request, "console/runs.html", context)


@page(SEE_RUNS, CONTROL)
def run_new(request: HttpRequest) -> HttpResponse:
    """The form that starts a run."""
    form = NewRunForm(projects_of(request), request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            run = services.run_submit(actor=actor_of(request), **form.cleaned_data)
            return redirect("console:run", run.pk)
        except ControllerActionError as error:
            form.add_error(None, error.line())
    return render(request, "console/run_new.html", {"form": form})
