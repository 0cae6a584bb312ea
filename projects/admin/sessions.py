"""Sessions: what runs, what ran, who started it, how it ended, what it printed. The actions are to terminate, and to clear output."""

import asyncio
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse

from projects import jobs, services
from projects.admin import takeover, transcript
from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of
from projects.admin.confirmation import Item, Question, confirmation, is_confirmed
from projects.admin.display import duration, in_full, shortened, visible
from projects.authentication import Caller
from projects.errors import ControllerActionError
from projects.models import CommandSession
from projects.selectors import ACTIVE

_TERMINATION = Question(
    title="Terminate sessions",
    action="terminate",
    confirm="Yes, terminate",
    consequence=(
        "Each program is asked to end, and killed with its whole process tree if it does not within a few seconds."
        " What it was doing is not saved."
    ),
)
_CLEARING = Question(
    title="Clear output",
    action="clear",
    confirm="Yes, clear",
    consequence="Everything these programs printed is deleted for good. Who started them and how they ended stays.",
)


class ActiveFilter(admin.SimpleListFilter):
    """Active sessions, or ended ones."""

    title = "life"
    parameter_name = "life"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> tuple[tuple[str, str], ...]:
        """The choices."""
        return (("active", "active"), ("ended", "ended"))

    def queryset(self, _request: HttpRequest, queryset: QuerySet[CommandSession]) -> QuerySet[CommandSession]:
        """The chosen rows."""
        match self.value():
            case "active":
                return queryset.filter(state__in=ACTIVE)
            case "ended":
                return queryset.exclude(state__in=ACTIVE)
        return queryset


@admin.register(CommandSession)
class CommandSessionAdmin(ReadOnlyAdmin[CommandSession]):
    """Newest first. The transcript needs ``view_transcript``, the action ``terminate_session``."""

    change_form_template = "admin/projects/commandsession/change_form.html"
    list_display = ("shown_command", "shown_state", "outcome", "lasted", "starter", "host", "created_at")
    list_filter = (ActiveFilter, "state", "end_reason", "kind", ("controller", OfOwnProjects), ("project", OfOwnProjects), "created_at")
    list_select_related = ("project", "controller")
    search_fields = ("command", "started_by", "ended_by")
    search_help_text = "Command, who started or ended it, or a whole session id"
    show_full_result_count = False
    actions = ("terminate", "clear")
    fieldsets = (
        (None, {"fields": ("whole_command", "state", "doing", "starter", "controller", "project")}),
        (
            "Life",
            {"fields": ("created_at", "started_at", "ended_at", "lasted", "lifetime_seconds", "exit", "ended", "failure", "left_over")},
        ),
        ("Program", {"fields": ("id", "kind", "io_mode", "warned", "pid", "shown_cwd", "rows", "cols")}),
        (
            "Streams",
            {
                "fields": (
                    *("stdout_next_offset", "stdout_first_offset", "stdout_sha256_ok"),
                    *("stderr_next_offset", "stderr_first_offset", "stderr_sha256_ok"),
                    *("retained_bytes", "cleared_at", "touched_at", "input_seq", "input_acked_seq"),
                )
            },
        ),
    )

    def has_terminate_permission(self, request: HttpRequest) -> bool:
        """May end sessions."""
        return request.user.has_perm("projects.terminate_session")

    def has_clear_permission(self, request: HttpRequest) -> bool:
        """May take the output of ended sessions away."""
        return request.user.has_perm("projects.clear_output")

    def has_transcript_permission(self, request: HttpRequest) -> bool:
        """May read what terminals showed."""
        return request.user.has_perm("projects.view_transcript")

    def get_urls(self) -> list[URLPattern]:
        """The raw transcript, beside the usual pages."""
        raw = path(
            "<uuid:session_id>/transcript/", self.admin_site.admin_view(self.raw_transcript), name="projects_commandsession_transcript"
        )
        operate = path("<uuid:session_id>/operate/", self.admin_site.admin_view(self.operate), name="projects_commandsession_operate")
        return [raw, operate, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """The session with its transcript. Looking at a transcript leaves an audit row."""
        context: dict[str, Any] = {**(extra_context or {}), "may_read": self.has_transcript_permission(request)}
        session = self.get_object(request, object_id)
        if session is not None:
            context |= {"is_active": session.state in ACTIVE, "may_terminate": self.has_terminate_permission(request)}
            context |= takeover.context_of(request, session)
            context |= {"action_name": "terminate", "action_checkbox_name": ACTION_CHECKBOX_NAME}
            if context["may_read"]:
                context["parts"] = transcript.newest(session, viewed_by=actor_of(request))
        return super().change_view(request, object_id, form_url, context)

    def operate(self, request: HttpRequest, session_id: Any) -> HttpResponse:
        """A person at the session's keyboard."""
        session = self.get_object(request, str(session_id))
        if session is None:
            raise Http404
        return takeover.operate(request, session)

    def raw_transcript(self, request: HttpRequest, session_id: Any) -> HttpResponseBase:
        """Every byte that is kept, as a download."""
        session = self.get_object(request, str(session_id))
        if session is None or not self.has_transcript_permission(request):
            raise Http404
        return transcript.download(session, viewed_by=actor_of(request))

    @admin.action(description="Terminate selected sessions", permissions=["terminate"])
    def terminate(self, request: HttpRequest, queryset: QuerySet[CommandSession]) -> HttpResponse | None:
        """Asks first; then ends each program with its whole process tree."""
        active = queryset.filter(state__in=ACTIVE)
        if not active:
            self.message_user(request, "None of the selected sessions is active.", messages.WARNING)
            return None
        if not is_confirmed(request):
            return self._confirmation(request, active, _TERMINATION)
        for session, problem in async_to_sync(_terminate_all)(list(active), actor_of(request)):
            link = reverse("admin:projects_commandsession_change", args=[session.pk])
            outcome = f"Could not terminate {link}: {problem}" if problem else f"Terminated: {shortened(session.command)}"
            self.message_user(request, outcome, messages.ERROR if problem else messages.SUCCESS)
        return None

    @admin.action(description="Clear the output of selected sessions", permissions=["clear"])
    def clear(self, request: HttpRequest, queryset: QuerySet[CommandSession]) -> HttpResponse | None:
        """Asks first; then takes the output of ended sessions away. What was done, by whom and how it ended stays."""
        ended = queryset.exclude(state__in=ACTIVE).filter(cleared_at__isnull=True)
        if not ended:
            self.message_user(request, "None of the selected sessions has ended and still has output.", messages.WARNING)
            return None
        if not is_confirmed(request):
            return self._confirmation(request, ended, _CLEARING)
        cleared = async_to_sync(_clear_all)(list(ended), actor_of(request))
        self.message_user(request, f"Cleared the output of {cleared} session(s).", messages.SUCCESS)
        return None

    def _confirmation(self, request: HttpRequest, sessions: QuerySet[CommandSession], question: Question) -> HttpResponse:
        items = [
            Item(session.pk, in_full(session.command), f"on {session.controller}, started by {shortened(session.started_by) or '-'}")
            for session in sessions
        ]
        return confirmation(self, request, question, items)

    @admin.display(description="command", ordering="command")
    def shown_command(self, session: CommandSession) -> str:
        """The beginning of the command line."""
        return shortened(session.command)

    @admin.display(description="command")
    def whole_command(self, session: CommandSession) -> str:
        """All of it: nobody judges a command by its beginning."""
        return in_full(session.command)

    @admin.display(description="state", ordering="state")
    def shown_state(self, session: CommandSession) -> str:
        """With what an active program does."""
        return f"{session.state}: {self.doing(session)}" if session.state in ACTIVE else session.state

    @admin.display(description="how it ended", ordering="end_reason")
    def outcome(self, session: CommandSession) -> str:
        """In one cell: how, by whom, and with which exit code or signal."""
        return self.ended(session) if self.exit(session) == "-" else f"{self.ended(session)}, {self.exit(session)}"

    @admin.display(description="started by", ordering="started_by")
    def starter(self, session: CommandSession) -> str:
        """Which caller."""
        return shortened(session.started_by) or "-"

    @admin.display(description="on", ordering="controller__name")
    def host(self, session: CommandSession) -> str:
        """Controller names are unique in their project only."""
        return f"{session.controller} ({session.project})"

    @admin.display(description="directory")
    def shown_cwd(self, session: CommandSession) -> str:
        """Where it was started."""
        return visible(session.cwd) or "home directory"

    @admin.display(description="terminal")
    def doing(self, session: CommandSession) -> str:
        """What an active program does."""
        if session.state not in ACTIVE:
            return "-"
        if session.terminal_state == "awaiting_input":
            return f"waits for input ({session.terminal_kind}, {session.terminal_evidence})"
        return shortened(session.terminal_detail) or "running"

    @admin.display(description="duration")
    def lasted(self, session: CommandSession) -> str:
        """From the call to the end, or to now."""
        return duration(session.created_at, session.ended_at)

    @admin.display(description="exit")
    def exit(self, session: CommandSession) -> str:
        """Exit code, signal, or why it never ran."""
        if session.exit_code is not None:
            return str(session.exit_code)
        return shortened(session.signal or session.failure_code) or "-"

    @admin.display(description="why it never ran")
    def failure(self, session: CommandSession) -> str:
        """In the host's words."""
        return visible(session.failure_message) or "-"

    @admin.display(description="warning")
    def warned(self, session: CommandSession) -> str:
        """Why it did not get what was asked for."""
        return visible(session.warning) or "-"

    @admin.display(description="left over")
    def left_over(self, session: CommandSession) -> str:
        """Processes that could not be ended, and what else its host noted."""
        return visible(", ".join(str(item) for item in [*session.survivors, *session.notes])) or "-"

    @admin.display(description="how it ended")
    def ended(self, session: CommandSession) -> str:
        """And who ended it, if somebody did."""
        if session.state in ACTIVE:
            return "-"
        how = session.end_reason or session.state.lower().replace("_", " ")
        return f"{how} by {shortened(session.ended_by)}" if session.ended_by else how


async def _terminate_all(sessions: list[CommandSession], actor: str) -> list[tuple[CommandSession, str]]:
    """Each session with what went wrong; all at once, because each may take its grace period."""

    async def terminate(session: CommandSession) -> tuple[CommandSession, str]:
        caller = Caller(project_id=session.project_id, label=actor, scopes=frozenset({"session:kill"}))
        try:
            result = await services.controller_terminate_interactive_command(session.project_id, session.id, caller=caller)
        except ControllerActionError as error:
            return session, f"{error} ({error.code})"
        return session, "" if result.success else "it is still ending; look again in a moment"

    return await asyncio.gather(*(terminate(session) for session in sessions))


async def _clear_all(sessions: list[CommandSession], actor: str) -> int:
    """How many were cleared."""
    for session in sessions:
        await jobs.output_clear(session.project_id, session.id, actor=actor)
    return len(sessions)
