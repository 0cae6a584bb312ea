"""Pages of monitors of log files.

The bytes that a monitor read are a transcript like any other: they need ``view_transcript``.
"""

from collections.abc import Mapping
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from projects import services
from projects.accounts.authentication import Caller
from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin, actor_of
from projects.admin.parts.confirmation import Item, Question, page_before
from projects.admin.parts.display import duration, text_column, visible
from projects.audit.log import audit
from projects.errors.base import ControllerActionError
from projects.models import Monitor
from projects.monitors import log as monitor_log

TAIL_BYTES = 8192
_STOP = Question(
    title="Stop monitors",
    action="stop",
    confirm="Yes, stop",
    is_for_many=True,
    consequence="They read no further. The logs stay, and so does everything read so far.",
)


@admin.register(Monitor)
class MonitorAdmin(ReadOnlyAdmin[Monitor]):
    """Newest first.

    The action stops monitors and keeps their logs; it needs ``terminate_session``.
    """

    list_display = (
        "shown_file",
        "status",
        "session_type",
        "host",
        "read_bytes",
        "lasted",
        "starter",
        "started_at",
    )
    list_filter = (
        "status",
        "session_type",
        ("controller", OfOwnProjects),
        ("project", OfOwnProjects),
        "started_at",
    )
    list_select_related = ("project", "controller")
    search_fields = ("log_file", "started_by", "stopped_by")
    search_id = "session_id"
    search_help_text = "Path, who started or stopped it, or a whole session id"
    actions = ("stop",)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "whole_file",
                    "status",
                    "session_type",
                    "session_id",
                    "shown_metadata",
                    "controller",
                    "project",
                )
            },
        ),
        (
            "Life",
            {
                "fields": (
                    "started_at",
                    "starter",
                    "read_at",
                    "stopped_at",
                    "stopper",
                    "lasted",
                    "log_deleted",
                    "kept_because",
                )
            },
        ),
        (
            "Place",
            {
                "fields": (
                    "file_position",
                    "shown_identity",
                    "read_bytes",
                    "first_offset",
                    "last_event",
                )
            },
        ),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Monitor | None = None) -> Any:
        """Adds the newest bytes for users who may read transcripts."""
        shown = super().get_fieldsets(request, obj)
        may_read = obj is not None and request.user.has_perm("projects.view_transcript")
        return (*shown, ("Read last", {"fields": ("tail",)})) if may_read else shown

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Leaves an audit row if the page shows bytes that the monitor read.

        Django calls it once the user may see the page, so a refused request leaves no row.
        """
        obj: Monitor | None = kwargs["obj"]
        if obj is not None and request.user.has_perm("projects.view_transcript"):
            about = (obj.project_id, obj.controller_id, obj.session_id)
            audit(actor_of(request), "monitor.view", about)
        return super().render_change_form(request, context, *args, **kwargs)

    def get_readonly_fields(self, request: HttpRequest, obj: Monitor | None = None) -> Any:
        computed = (
            "starter",
            "stopper",
            "kept_because",
            "shown_identity",
            "whole_file",
            "shown_metadata",
            "lasted",
            "read_bytes",
            "last_event",
            "tail",
        )
        return (*super().get_readonly_fields(request, obj), *computed)

    def has_stop_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.terminate_session")

    @admin.action(description="Stop (the log stays)", permissions=["stop"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Monitor]) -> HttpResponse | None:
        """Stops monitors as a caller would with ``save_log``."""
        rows = queryset.filter(status=Monitor.Status.ACTIVE).select_related("controller")
        active = list(rows)
        items = [
            Item(row.pk, visible(row.log_file), f"on {self.host(row)}", self.host(row))
            for row in active
        ]
        if page := page_before(self, request, _STOP, items):
            return page
        stopped: list[str] = []
        for monitor in active:
            by = Caller(project_id=monitor.project_id, label=actor_of(request), scopes=frozenset())
            try:
                async_to_sync(services.monitor_stop)(
                    monitor.project_id, str(monitor.session_id), caller=by, save_log=True
                )
                stopped.append(self.host(monitor))
            except ControllerActionError as error:
                self.message_user(request, str(error), messages.WARNING)
        on_hosts = f" on {', '.join(sorted(set(stopped)))}" if stopped else ""
        self.message_user(request, f"Monitors stopped: {len(stopped)}{on_hosts}.")
        return None

    shown_file = text_column("log_file", "log file", is_sortable=True)
    whole_file = text_column("log_file", "log file", is_whole=True)
    starter = text_column("started_by", "started by", is_sortable=True)
    stopper = text_column("stopped_by", "stopped by", is_sortable=True)
    kept_because = text_column("log_kept_reason", "log kept because")
    shown_identity = text_column("file_identity", "file identity")

    @admin.display(description="metadata")
    def shown_metadata(self, monitor: Monitor) -> str:
        return _listed(monitor.metadata)

    @admin.display(description="host", ordering="controller__name")
    def host(self, monitor: Monitor) -> str:
        return monitor.controller.name

    @admin.display(description="bytes read", ordering="next_offset")
    def read_bytes(self, monitor: Monitor) -> int:
        """The bytes read from all files that had the name."""
        return monitor.next_offset

    @admin.display(description="lasted")
    def lasted(self, monitor: Monitor) -> str:
        return duration(monitor.started_at, monitor.stopped_at)

    @admin.display(description="last reply")
    def last_event(self, monitor: Monitor) -> str:
        """The file as the last reply found it."""
        return _listed({name: value for name, value in monitor.shown_event.items() if value})

    @admin.display(description="content")
    def tail(self, monitor: Monitor) -> str:
        """The newest TAIL_BYTES that the monitor read."""
        start = max(monitor.first_offset, monitor.next_offset - TAIL_BYTES)
        data = b"".join(monitor_log.pieces(monitor.id, start, monitor.next_offset))
        return visible(data.decode(errors="replace"), keep="\n\t")


def _listed(values: Mapping[str, object]) -> str:
    return visible(", ".join(f"{name}: {value}" for name, value in values.items())) or "-"
