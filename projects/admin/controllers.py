"""Enrolled hosts, and whether they are there."""

from collections.abc import Iterable
from typing import Any

from django.contrib import admin, messages
from django.db.models import Count, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of
from projects.admin.confirmation import Item, Question, confirmation, is_confirmed
from projects.admin.display import duration, shortened, visible
from projects.audit_log import audit
from projects.enrolment import controller_approve
from projects.models import Controller
from projects.revocation import controller_revoke
from projects.selectors import ACTIVE, is_online

_REVOCATION = Question(
    title="Revoke controllers",
    action="revoke",
    confirm="Yes, revoke",
    consequence=(
        "Their connections are closed within seconds and all their credentials revoked; their names are free for other hosts."
        " Programs that run go on running there: terminate them first if they are to end."
    ),
)


class OnlineFilter(admin.SimpleListFilter):
    """By lease."""

    title = "presence"
    parameter_name = "presence"

    def lookups(self, _request: HttpRequest, _model_admin: Any) -> Iterable[tuple[str, str]]:
        """The choices."""
        return (("online", "online"), ("offline", "offline"))

    def queryset(self, _request: HttpRequest, queryset: QuerySet[Controller]) -> QuerySet[Controller]:
        """The chosen rows."""
        running = Q(lease_expires_at__gt=timezone.now())
        match self.value():
            case "online":
                return queryset.filter(running)
            case "offline":
                return queryset.exclude(running)
        return queryset


@admin.register(Controller)
class ControllerAdmin(ReadOnlyAdmin[Controller]):
    """Presence is the lease, and nothing else."""

    list_display = (
        "name",
        "project",
        "online",
        "approved",
        "alarmed",
        "lease",
        "shown_version",
        "shown_platform",
        "shown_hostname",
        "sessions_active",
    )
    list_filter = (OnlineFilter, ("project", OfOwnProjects))
    list_select_related = ("project",)
    # Counting them undoes the model's own order.
    ordering = ("name",)
    search_fields = ("name", "hostname", "platform")
    actions = ("approve", "revoke", "dismiss")
    fields = (
        *(
            "name",
            "project",
            "online",
            "awaits_approval_since",
            "shown_alarm",
            "alarmed_at",
            "lease",
            "shown_hostname",
            "shown_platform",
            "shown_version",
            "shown_capabilities",
        ),
        *("epoch", "id", "created_at", "revoked_at"),
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Controller]:
        """With the number of active sessions."""
        active = Q(sessions__state__in=ACTIVE)
        return super().get_queryset(request).annotate(active_count=Count("sessions", filter=active))

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """May enrol hosts and revoke them."""
        return request.user.has_perm("projects.manage_controller")

    @admin.action(description="Revoke selected controllers", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Controller]) -> HttpResponse | None:
        """Asks first."""
        active = queryset.filter(revoked_at__isnull=True)
        if not active:
            self.message_user(request, "All of the selected controllers are revoked.", messages.WARNING)
            return None
        if not is_confirmed(request):
            return confirmation(self, request, _REVOCATION, [Item(row.pk, row.name, f"of {row.project}") for row in active])
        for row in list(active):
            controller_revoke(controller=row, actor=actor_of(request))
            self.message_user(request, f"Revoked: {row.name}", messages.SUCCESS)
        return None

    @admin.action(description="Approve selected controllers", permissions=["manage"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Controller]) -> None:
        """They are served from their next attempt on."""
        for row in queryset:
            if controller_approve(controller=row, actor=actor_of(request)):
                self.message_user(request, f"Approved: {row} ({row.project})", messages.SUCCESS)

    @admin.display(boolean=True, ordering="awaits_approval_since")
    def approved(self, controller: Controller) -> bool:
        """Whether an operator has let it in, where that is asked for."""
        return controller.awaits_approval_since is None

    @admin.action(description="Dismiss alarms of selected controllers", permissions=["manage"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[Controller]) -> None:
        """Somebody has dealt with them; the audit log keeps each."""
        for row in queryset.filter(alarmed_at__isnull=False):
            Controller.objects.filter(pk=row.pk).update(alarmed_at=None, alarm="")
            audit(actor_of(request), "controller.dismiss_alarm", (row.project_id, row.pk, None), {"alarm": row.alarm})

    @admin.display(description="alarm", ordering="alarmed_at")
    def alarmed(self, controller: Controller) -> str:
        """Where something that looked like a copy of its credential was refused."""
        return "ALARM" if controller.alarmed_at else "-"

    @admin.display(description="alarm")
    def shown_alarm(self, controller: Controller) -> str:
        """Which host was refused, and why."""
        return visible(controller.alarm) or "-"

    @admin.display(boolean=True, ordering="lease_expires_at")
    def online(self, controller: Controller) -> bool:
        """Whether the lease runs."""
        return is_online(controller.lease_expires_at)

    @admin.display(ordering="lease_expires_at")
    def lease(self, controller: Controller) -> str:
        """For how long, or since when not."""
        until, now = controller.lease_expires_at, timezone.now()
        if until is None:
            return "never connected"
        return f"for another {duration(now, until)}" if until > now else f"expired {duration(until, now)} ago"

    @admin.display(description="version", ordering="client_version")
    def shown_version(self, controller: Controller) -> str:
        """What the daemon says it is."""
        return shortened(controller.client_version) or "-"

    @admin.display(description="platform", ordering="platform")
    def shown_platform(self, controller: Controller) -> str:
        """What the host says it is."""
        return shortened(controller.platform) or "-"

    @admin.display(description="hostname", ordering="hostname")
    def shown_hostname(self, controller: Controller) -> str:
        """What the host calls itself."""
        return shortened(controller.hostname) or "-"

    @admin.display(description="capabilities")
    def shown_capabilities(self, controller: Controller) -> str:
        """What the daemon says it can do."""
        return visible(", ".join(str(item) for item in controller.capabilities)) or "-"

    @admin.display(description="active sessions", ordering="active_count")
    def sessions_active(self, controller: Controller) -> int:
        """Sessions that have not ended."""
        return int(controller.active_count)  # type: ignore[attr-defined]  # annotated above
