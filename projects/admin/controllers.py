"""Pages of enrolled hosts: whether they are online, approved, revoked or alarmed."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar, TypedDict

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse

from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin, actor_of
from projects.admin.parts.careful_filters import ChoiceFilter
from projects.admin.parts.confirmation import Item, Question, page_before
from projects.admin.parts.counts import active_sessions
from projects.admin.parts.display import duration, text_column, visible
from projects.enrolment.codes import alarm_dismiss, controller_approve
from projects.enrolment.revocation import controller_revoke
from projects.models import Controller
from projects.sessions.answers.hints import in_iso
from projects.sessions.selectors import is_online
from projects.storage import clock

_REVOCATION = Question(
    title="Revoke controllers",
    action="revoke",
    confirm="Yes, revoke",
    nothing="All of the selected controllers are revoked.",
    consequence=(
        "Their connections are closed within seconds, all their credentials are revoked, and "
        "other hosts may take their names. Running programs keep running there: terminate them "
        "first if they should end."
    ),
)
_APPROVAL = Question(
    title="Approve controllers",
    action="approve",
    confirm="Yes, approve",
    is_for_many=True,
    consequence="From now on callers of their projects may start programs on these hosts.",
)
_DISMISSAL = Question(
    title="Dismiss alarms",
    action="dismiss",
    confirm="Yes, dismiss",
    is_for_many=True,
    consequence="The alarms are removed from these pages. The audit log keeps them.",
)


class OnlineFilter(ChoiceFilter):
    """Hosts whose lease runs, or the others."""

    title = "presence"
    parameter_name = "presence"

    def conditions(self) -> Mapping[str, Q]:
        running = Q(lease_expires_at__gt=clock.host_lease_now())
        return {"online": running, "offline": ~running}


class RevokedFilter(ChoiceFilter):
    """Hosts that may connect, or revoked hosts."""

    title = "revocation"
    parameter_name = "revoked"
    labels: ClassVar = {"no": "not revoked", "yes": "revoked"}

    def conditions(self) -> Mapping[str, Q]:
        return {"no": Q(revoked_at__isnull=True), "yes": Q(revoked_at__isnull=False)}


def _items(rows: Iterable[Controller]) -> list[Item]:
    return [Item(row.pk, row.name, f"of {row.project}") for row in rows]


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations


class _ControllerCounts(TypedDict):
    """The counts that the list adds to each row."""

    active_count: int


@admin.register(Controller)
class ControllerAdmin(ReadOnlyAdmin[Controller]):
    """A host is online while its lease runs; nothing else decides that."""

    list_display = (
        "name",
        "project",
        "online",
        "approved",
        "alarmed",
        "revoked",
        "lease",
        "shown_version",
        "shown_platform",
        "shown_hostname",
        "sessions_active",
    )
    list_filter = (OnlineFilter, RevokedFilter, ("project", OfOwnProjects))
    list_select_related = ("project",)
    # Counting them undoes the model's own order.
    ordering = ("name",)
    search_fields = ("name", "hostname", "platform")
    actions = ("approve", "revoke", "dismiss")
    fields = (
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
        "epoch",
        "id",
        "created_at",
        "revoked_at",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[Controller]:
        return super().get_queryset(request).annotate(active_count=active_sessions("controller"))

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.manage_controller")

    @admin.action(description="Revoke selected controllers", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Controller]) -> HttpResponse | None:
        active = list(queryset.filter(revoked_at__isnull=True))
        if page := page_before(self, request, _REVOCATION, _items(active)):
            return page
        for row in active:
            controller_revoke(controller=row, actor=actor_of(request))
            self.message_user(request, f"Revoked: {row} ({row.project})", messages.SUCCESS)
        return None

    @admin.action(description="Approve selected controllers", permissions=["manage"])
    def approve(self, request: HttpRequest, queryset: QuerySet[Controller]) -> HttpResponse | None:
        """Has the hosts served from their next attempt to connect."""
        waiting = list(queryset.filter(awaits_approval_since__isnull=False))
        if page := page_before(self, request, _APPROVAL, _items(waiting)):
            return page
        for row in waiting:
            if controller_approve(controller=row, actor=actor_of(request)):
                self.message_user(request, f"Approved: {row} ({row.project})", messages.SUCCESS)
        return None

    @admin.display(boolean=True, ordering="awaits_approval_since")
    def approved(self, controller: Controller) -> bool:
        """False for a host that an operator still has to approve."""
        return controller.awaits_approval_since is None

    @admin.action(description="Dismiss alarms of selected controllers", permissions=["manage"])
    def dismiss(self, request: HttpRequest, queryset: QuerySet[Controller]) -> HttpResponse | None:
        alarmed = list(queryset.filter(alarmed_at__isnull=False))
        if page := page_before(self, request, _DISMISSAL, _items(alarmed)):
            return page
        for row in alarmed:
            if alarm_dismiss(controller=row, actor=actor_of(request)):
                self.message_user(
                    request, f"Dismissed the alarm of {row} ({row.project})", messages.SUCCESS
                )
        return None

    @admin.display(description="revoked", ordering="revoked_at")
    def revoked(self, controller: Controller) -> str:
        return "-" if controller.revoked_at is None else f"since {in_iso(controller.revoked_at)}"

    @admin.display(description="alarm", ordering="alarmed_at")
    def alarmed(self, controller: Controller) -> str:
        """A host whose credential another daemon seems to have a copy of."""
        return "ALARM" if controller.alarmed_at else "-"

    @admin.display(boolean=True, ordering="lease_expires_at")
    def online(self, controller: Controller) -> bool:
        return is_online(controller.lease_expires_at)

    @admin.display(ordering="lease_expires_at")
    def lease(self, controller: Controller) -> str:
        until, now = controller.lease_expires_at, clock.host_lease_now()
        if until is None:
            return "never connected"
        return (
            f"for another {duration(now, until)}"
            if until > now
            else f"expired {duration(until, now)} ago"
        )

    shown_version = text_column("client_version", "version", is_sortable=True)
    shown_platform = text_column("platform", "platform", is_sortable=True)
    shown_hostname = text_column("hostname", "hostname", is_sortable=True)
    shown_alarm = text_column("alarm", "alarm", is_whole=True)

    @admin.display(description="capabilities")
    def shown_capabilities(self, controller: Controller) -> str:
        return visible(", ".join(str(item) for item in controller.capabilities)) or "-"

    @admin.display(description="active sessions", ordering="active_count")
    def sessions_active(self, controller: "WithAnnotations[Controller, _ControllerCounts]") -> int:
        return controller.active_count
