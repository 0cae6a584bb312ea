"""Monitors of log files. What they read is a transcript like any other, and needs ``view_transcript``."""

from typing import Any

from asgiref.sync import async_to_sync
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from projects import monitor_log, monitors
from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of
from projects.admin.display import duration, shortened, visible
from projects.audit_log import audit
from projects.authentication import Caller
from projects.errors import ControllerActionError
from projects.models import Monitor

TAIL_BYTES = 8192


@admin.register(Monitor)
class MonitorAdmin(ReadOnlyAdmin[Monitor]):
    """Newest first. The action stops monitors and keeps their logs; it needs ``terminate_session``."""

    list_display = ("shown_file", "status", "session_type", "host", "read_bytes", "lasted", "starter", "started_at")
    list_filter = ("status", "session_type", ("controller", OfOwnProjects), ("project", OfOwnProjects), "started_at")
    list_select_related = ("project", "controller")
    search_fields = ("log_file", "started_by", "stopped_by")
    search_id = "session_id"
    search_help_text = "Path, who started or stopped it, or a whole session id"
    actions = ("stop",)
    fieldsets = (
        (None, {"fields": ("whole_file", "status", "session_type", "session_id", "shown_metadata", "controller", "project")}),
        (
            "Life",
            {"fields": ("started_at", "starter", "read_at", "stopped_at", "stopper", "lasted", "log_deleted", "kept_because")},
        ),
        ("Place", {"fields": ("file_position", "shown_identity", "read_bytes", "first_offset", "last_event")}),
    )

    def get_fieldsets(self, request: HttpRequest, obj: Monitor | None = None) -> Any:
        """What was read is shown to those who may see transcripts."""
        shown = super().get_fieldsets(request, obj)
        may_read = obj is not None and request.user.has_perm("projects.view_transcript")
        return (*shown, ("Read last", {"fields": ("tail",)})) if may_read else shown

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """One monitor. Looking at what it read leaves an audit row."""
        monitor = self.get_object(request, object_id)
        if monitor is not None and request.user.has_perm("projects.view_transcript"):
            audit(actor_of(request), "monitor.view", (monitor.project_id, monitor.controller_id, monitor.session_id))
        return super().change_view(request, object_id, form_url, extra_context)

    def get_readonly_fields(self, request: HttpRequest, obj: Monitor | None = None) -> Any:
        """All of them."""
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
        """May stop monitors."""
        return request.user.has_perm("projects.terminate_session")

    @admin.action(description="Stop (the log stays)", permissions=["stop"])
    def stop(self, request: HttpRequest, queryset: QuerySet[Monitor]) -> None:
        """As a caller would, with save_log."""
        stopped = 0
        for monitor in queryset.filter(status=Monitor.Status.ACTIVE):
            by = Caller(project_id=monitor.project_id, label=actor_of(request), scopes=frozenset())
            try:
                async_to_sync(monitors.monitor_stop)(monitor.project_id, str(monitor.session_id), caller=by, save_log=True)
                stopped += 1
            except ControllerActionError as error:
                self.message_user(request, str(error), messages.WARNING)
        self.message_user(request, f"Monitors stopped: {stopped}.")

    @admin.display(description="log file", ordering="log_file")
    def shown_file(self, monitor: Monitor) -> str:
        """Its path, in short."""
        return shortened(monitor.log_file)

    @admin.display(description="log file")
    def whole_file(self, monitor: Monitor) -> str:
        """Its path."""
        return visible(monitor.log_file)

    @admin.display(description="metadata")
    def shown_metadata(self, monitor: Monitor) -> str:
        """As the caller gave it."""
        return visible(", ".join(f"{name}: {value}" for name, value in monitor.metadata.items())) or "-"

    @admin.display(description="started by", ordering="started_by")
    def starter(self, monitor: Monitor) -> str:
        """Which caller."""
        return shortened(monitor.started_by) or "-"

    @admin.display(description="stopped by", ordering="stopped_by")
    def stopper(self, monitor: Monitor) -> str:
        """Which caller."""
        return shortened(monitor.stopped_by) or "-"

    @admin.display(description="log kept because")
    def kept_because(self, monitor: Monitor) -> str:
        """In the host's word."""
        return shortened(monitor.log_kept_reason) or "-"

    @admin.display(description="file identity")
    def shown_identity(self, monitor: Monitor) -> str:
        """In the host's words."""
        return shortened(monitor.file_identity) or "-"

    @admin.display(description="host", ordering="controller__name")
    def host(self, monitor: Monitor) -> str:
        """Where the file is."""
        return monitor.controller.name

    @admin.display(description="bytes read", ordering="next_offset")
    def read_bytes(self, monitor: Monitor) -> int:
        """Over all files that had the name."""
        return monitor.next_offset

    @admin.display(description="lasted")
    def lasted(self, monitor: Monitor) -> str:
        """From start to stop, or to now."""
        return duration(monitor.started_at, monitor.stopped_at)

    @admin.display(description="last reply")
    def last_event(self, monitor: Monitor) -> str:
        """What became of the file."""
        return visible(", ".join(f"{name}: {value}" for name, value in monitor.shown_event.items() if value)) or "-"

    @admin.display(description="content")
    def tail(self, monitor: Monitor) -> str:
        """The newest of what was read."""
        start = max(monitor.first_offset, monitor.next_offset - TAIL_BYTES)
        data = b"".join(monitor_log.pieces(monitor.id, start, monitor.next_offset))
        return visible(data.decode(errors="replace"), keep="\n\t")
