"""Pages of sessions: who started them, how they ended, and the output of their programs.

Actions terminate active sessions and clear the output of ended ones.
"""

from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, get_args

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path, reverse

from controller_client.protocol.values import EndReason
from projects import services
from projects.admin import takeover
from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin, actor_of, require_still
from projects.admin.parts.careful_filters import ChoiceFilter
from projects.admin.parts.confirmation import Item, Question, count_of, page_before
from projects.admin.parts.display import duration, in_full, shortened, text_column, visible
from projects.models import CommandSession
from projects.models.survivors import survivors_of
from projects.sessions.selectors import ACTIVE

_TERMINATION = Question(
    title="Terminate sessions",
    action="terminate",
    noun="session",
    plural="sessions",
    confirm="Yes, terminate",
    nothing="None of the selected sessions is active.",
    consequence=(
        "Each program is asked to end. If it does not end within a few seconds it is killed with "
        "its whole process tree. Unsaved work is lost."
    ),
)
_CLEARING = Question(
    title="Clear output",
    action="clear",
    noun="session",
    plural="sessions",
    confirm="Yes, clear",
    nothing="None of the selected sessions has ended and still has output.",
    consequence=(
        "Everything these programs printed is deleted for good. The sessions stay listed with "
        "who started them and how they ended."
    ),
)

_TRANSCRIPT_RIGHTS = ("projects.view_commandsession", "projects.view_transcript")
_MOST_NAMED = 5
"""Up to this many terminated sessions have a message each; more are counted by host."""


class ActiveFilter(ChoiceFilter):
    """Active sessions, or ended ones."""

    title = "status"
    parameter_name = "life"

    def conditions(self) -> Mapping[str, Q]:
        return {"active": Q(state__in=ACTIVE), "ended": ~Q(state__in=ACTIVE)}


class EndReasonFilter(ChoiceFilter):
    """Sessions by how they ended. The choices are known, so no row is read for them."""

    title = "end reason"
    parameter_name = "end_reason"

    def conditions(self) -> Mapping[str, Q]:
        return {reason: Q(end_reason=reason) for reason in get_args(EndReason)}


@admin.register(CommandSession)
class CommandSessionAdmin(ReadOnlyAdmin[CommandSession]):
    """Sessions, newest first. Transcripts and each action need a permission of their own."""

    change_form_template = "admin/projects/commandsession/change_form.html"
    list_display = (
        "shown_command",
        "shown_state",
        "outcome",
        "lasted",
        "starter",
        "host",
        "created_at",
    )
    list_filter = (
        ActiveFilter,
        "state",
        EndReasonFilter,
        "kind",
        ("controller", OfOwnProjects),
        ("project", OfOwnProjects),
        "created_at",
    )
    list_select_related = ("project", "controller")
    search_fields = ("command", "started_by", "ended_by")
    search_help_text = "Command, who started or ended it, or a whole session id"
    show_full_result_count = False
    actions = ("terminate", "clear")
    fieldsets = (
        (None, {"fields": ("whole_command", "state", "doing", "starter", "controller", "project")}),
        (
            "Life",
            {
                "fields": (
                    "created_at",
                    "started_at",
                    "ended_at",
                    "lasted",
                    "lifetime_seconds",
                    "exit",
                    "ended",
                    "failure",
                    "left_over",
                )
            },
        ),
        (
            "Program",
            {"fields": ("id", "kind", "io_mode", "warned", "pid", "shown_cwd", "rows", "cols")},
        ),
        (
            "Streams",
            {
                "fields": (
                    "stdout_next_offset",
                    "stdout_first_offset",
                    "stdout_sha256_ok",
                    "stderr_next_offset",
                    "stderr_first_offset",
                    "stderr_sha256_ok",
                    "retained_bytes",
                    "cleared_at",
                    "touched_at",
                    "input_seq",
                    "input_acked_seq",
                )
            },
        ),
    )

    def has_terminate_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.terminate_session")

    def has_clear_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.clear_output")

    def has_transcript_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perms(_TRANSCRIPT_RIGHTS)

    def get_urls(self) -> list[URLPattern]:
        raw = path(
            "<uuid:session_id>/transcript/",
            self.admin_site.admin_view(self.raw_transcript),
            name="projects_commandsession_transcript",
        )
        operate = path(
            "<uuid:session_id>/operate/",
            self.admin_site.admin_view(self.operate),
            name="projects_commandsession_operate",
        )
        return [raw, operate, *super().get_urls()]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Shows the session with its transcript. Reading a transcript leaves an audit row.

        Django calls it once the user may see the page, so a refused request leaves no row.
        """
        obj: CommandSession | None = kwargs["obj"]
        context["may_read"] = self.has_transcript_permission(request)
        if obj is not None:
            context |= {
                "is_active": obj.state in ACTIVE,
                "may_terminate": self.has_terminate_permission(request),
            }
            context |= takeover.context_of(request, obj)
            context |= {"action_name": "terminate", "action_checkbox_name": ACTION_CHECKBOX_NAME}
            if context["may_read"]:
                newest = services.session_newest_text(obj, actor=actor_of(request))
                context["parts"] = [
                    (stream, part, visible(part.text, keep="\n\t"))
                    for stream, part in newest.items()
                ]
        return super().render_change_form(request, context, *args, **kwargs)

    def operate(self, request: HttpRequest, session_id: Any) -> HttpResponse:
        """Does what an operator at the session's keyboard asks for."""
        session = self.get_object(request, str(session_id))
        # Django asks for this right on its own pages only.
        if session is None or not self.has_view_permission(request, session):
            raise Http404
        return takeover.operate(request, session)

    def raw_transcript(self, request: HttpRequest, session_id: Any) -> HttpResponseBase:
        """Every stored byte of the session as a download."""
        session = self.get_object(request, str(session_id))
        if session is None or not self.has_transcript_permission(request):
            raise Http404
        pieces = async_to_sync(services.recording_export)(
            session.project_id,
            session.pk,
            export_format="raw",
            actor=actor_of(request),
            require=partial(require_still, request, [session.project_id], *_TRANSCRIPT_RIGHTS),
        )
        return services.recording_attachment(pieces, session.pk, "raw")

    @admin.action(description="Terminate selected sessions", permissions=["terminate"])
    def terminate(
        self, request: HttpRequest, queryset: QuerySet[CommandSession]
    ) -> HttpResponse | None:
        """Ends each program with its whole process tree."""
        sessions = list(queryset.filter(state__in=ACTIVE))
        items = [self._item(session) for session in sessions]
        if (page := page_before(self, request, _TERMINATION, items)) or not sessions:
            return page
        ids = [(session.project_id, session.id) for session in sessions]
        problems = async_to_sync(services.sessions_terminate)(ids, actor=actor_of(request))
        outcomes = list(zip(sessions, problems, strict=True))
        ended = [session for session, problem in outcomes if not problem]
        for session, problem in outcomes:
            if problem:
                link = reverse("admin:projects_commandsession_change", args=[session.pk])
                self.message_user(
                    request,
                    f"Could not terminate {link} on {self.host(session)}: {problem}",
                    messages.ERROR,
                )
        if len(ended) > _MOST_NAMED:
            hosts = Counter(self.host(session) for session in ended)
            named = ", ".join(f"{host}: {count}" for host, count in sorted(hosts.items()))
            count = count_of([self._item(session) for session in ended], "session", "sessions")
            self.message_user(request, f"Terminated: {count}. {named}", messages.SUCCESS)
        else:
            for session in ended:
                self.message_user(
                    request,
                    f"Terminated: {shortened(session.command)} on {self.host(session)}",
                    messages.SUCCESS,
                )
        return None

    @admin.action(description="Clear the output of selected sessions", permissions=["clear"])
    def clear(
        self, request: HttpRequest, queryset: QuerySet[CommandSession]
    ) -> HttpResponse | None:
        """Deletes the output of ended sessions. Their rows stay."""
        ended = queryset.exclude(state__in=ACTIVE).filter(cleared_at__isnull=True)
        sessions = list(ended)
        items = [self._item(session) for session in sessions]
        if (page := page_before(self, request, _CLEARING, items)) or not sessions:
            return page
        async_to_sync(_clear_all)(sessions, actor_of(request))
        hosts = ", ".join(sorted({self.host(session) for session in sessions}))
        count = f"{len(sessions)} session{'' if len(sessions) == 1 else 's'}"
        self.message_user(request, f"Cleared the output of {count} on {hosts}.", messages.SUCCESS)
        return None

    def _item(self, session: CommandSession) -> Item:
        about = f"on {self.host(session)}, started by {shortened(session.started_by) or '-'}"
        return Item(session.pk, in_full(session.command), about, self.host(session))

    shown_command = text_column("command", "command", is_sortable=True)
    starter = text_column("started_by", "started by", is_sortable=True)
    shown_cwd = text_column("cwd", "directory", is_whole=True, empty="home directory")
    failure = text_column("failure_message", "start error", is_whole=True)
    warned = text_column("warning", "warning", is_whole=True)

    @admin.display(description="command")
    def whole_command(self, session: CommandSession) -> str:
        """The whole command: its beginning alone can mislead."""
        return in_full(session.command)

    @admin.display(description="state", ordering="state")
    def shown_state(self, session: CommandSession) -> str:
        """The state and, for an active session, whether its program waits for input."""
        return (
            f"{session.state}: {self.doing(session)}" if session.state in ACTIVE else session.state
        )

    @admin.display(description="how it ended", ordering="end_reason")
    def outcome(self, session: CommandSession) -> str:
        """The end of the session: its reason, who ended it, and the exit code or the signal."""
        return (
            self.ended(session)
            if self.exit(session) == "-"
            else f"{self.ended(session)}, {self.exit(session)}"
        )

    @admin.display(description="host", ordering="controller__name")
    def host(self, session: CommandSession) -> str:
        """The host with its project: controller names are unique in their project only."""
        return f"{session.controller} ({session.project})"

    @admin.display(description="terminal")
    def doing(self, session: CommandSession) -> str:
        """The holder's last verdict on an active program."""
        if session.state not in ACTIVE:
            return "-"
        if session.terminal_state == "awaiting_input":
            return f"waits for input ({session.terminal_kind}, {session.terminal_evidence})"
        return shortened(session.terminal_detail) or "running"

    @admin.display(description="duration")
    def lasted(self, session: CommandSession) -> str:
        """The time from the call that started it to its end, or to now."""
        return duration(session.created_at, session.ended_at)

    @admin.display(description="exit")
    def exit(self, session: CommandSession) -> str:
        """The exit code, the signal, or the reason why the program never ran."""
        if session.exit_code is not None:
            return str(session.exit_code)
        return shortened(session.signal or session.failure_code) or "-"

    @admin.display(description="leftover processes")
    def left_over(self, session: CommandSession) -> str:
        """Processes that could not be ended, and other notes of the host."""
        left = survivors_of(session.state, session.survivors, session.notes)
        unknown = (
            ["unknown whether processes are left"]
            if left is None and session.state not in ACTIVE
            else []
        )
        return visible(", ".join(str(item) for item in [*(left or unknown), *session.notes])) or "-"

    @admin.display(description="how it ended")
    def ended(self, session: CommandSession) -> str:
        """The reason of the end, and who ended the session."""
        if session.state in ACTIVE:
            return "-"
        how = session.end_reason or session.state.lower().replace("_", " ")
        return f"{how} by {shortened(session.ended_by)}" if session.ended_by else how


async def _clear_all(sessions: list[CommandSession], actor: str) -> None:
    for session in sessions:
        await services.output_clear(session.project_id, session.id, actor=actor)
