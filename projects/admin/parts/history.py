"""The page *History* of a row, made of the audit rows about it."""

from typing import TYPE_CHECKING, Any, Final

from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import unquote
from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from projects.admin.parts.display import detail_text, shortened, visible
from projects.audit.log import SERVER
from projects.models import AuditEvent, CommandSession, Controller, Monitor, Project

if TYPE_CHECKING:
    _Base = ModelAdmin[Any]
else:
    _Base = object

MOST_SHOWN: Final = 200


class AuditHistory(_Base):
    """A mixin before an admin class of Django's: its history is the audit log.

    Django's own history knows only the forms that were saved in the admin.
    """

    def may_read_history(self, request: HttpRequest) -> bool:
        """True for those who may read the audit log."""
        return request.user.has_perm("projects.view_auditevent")

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        row = self.get_object(request, unquote(object_id))
        if row is None or not self.has_view_permission(request, row):
            return super().history_view(request, object_id, extra_context)
        return history(self, request, row, may_read=self.may_read_history(request))


def history(
    model_admin: "ModelAdmin[Any]", request: HttpRequest, row: Model, *, may_read: bool
) -> HttpResponse:
    """The newest audit rows about ``row``, for those who may read them."""
    found = list(events_about(row).order_by("-id")[: MOST_SHOWN + 1]) if may_read else []
    context = {
        **model_admin.admin_site.each_context(request),
        "title": f"History of {shortened(str(row))}",
        "shown_name": shortened(str(row)),
        "object": row,
        "opts": model_admin.opts,
        "may_read": may_read,
        "is_cut": len(found) > MOST_SHOWN,
        "events": [
            {
                "pk": event.pk,
                "created_at": event.created_at,
                "actor": visible(event.actor),
                "action": event.action,
                "detail": detail_text(event.detail),
            }
            for event in found[:MOST_SHOWN]
        ],
    }
    return TemplateResponse(request, "admin/projects/history.html", context)


# No audit row has the ids of these rows. Each is found by the beginning of its actions, the key in
# the detail of the audit row, and the attribute with the value of that key.
_KNOWN_BY: Final = {
    "secret": ("secret.", "name", "name"),
    "apitoken": ("api_token.", "key_id", "key_id"),
    "controllercredential": ("controller_credential.", "key_id", "key_id"),
    "enrolmentcode": ("enrolment_code.", "key_id", "key_id"),
    "agentrun": ("agent_run.", "run", "pk"),
}


def events_about(row: Any) -> QuerySet[AuditEvent]:
    """The audit rows about ``row``, found by its id or by the detail of its actions."""
    wanted: dict[str, Any]
    match row:
        case CommandSession():
            wanted = {"project_id": row.project_id, "session_id": row.pk}
        case Monitor():
            wanted = {
                "project_id": row.project_id,
                "session_id": row.session_id,
                "action__startswith": "monitor.",
            }
        case Controller():
            wanted = {"project_id": row.project_id, "controller_id": row.pk, "session_id": None}
        case Project():
            wanted = {"project_id": row.pk, "action__startswith": "project."}
        case User():
            return _events_named("user", row.get_username(), "username")
        case Group():
            return _events_named("group", row.name, "name")
        case Model() if (kind := ContentType.objects.get_for_model(row).model) in _KNOWN_BY:
            action, name, attribute = _KNOWN_BY[kind]
            value = getattr(row, attribute)
            known_by = {f"detail__{name}": value if isinstance(value, int) else str(value)}
            wanted = {"project_id": _project_of(row), "action__startswith": action, **known_by}
        case _:
            wanted = {"pk": row.pk} if isinstance(row, AuditEvent) else {"pk": None}
    return AuditEvent.objects.filter(**wanted)


def _events_named(kind: str, name: str, attribute: str) -> QuerySet[AuditEvent]:
    """The rows about a user or a group, also under the names that it had before.

    Another one that has such a name at another time is not meant: a name counts from the row that
    made it, or freed it, to the row that changed it.
    """
    rows = AuditEvent.objects.filter(
        Q(action__startswith=f"{kind}.") | Q(action="password.change"), project_id=SERVER
    )
    ends = Q(action__in=(f"{kind}.create", f"{kind}.delete"))
    mine, found = rows.filter(**{f"detail__{kind}": name}), Q()
    while first := (
        mine.filter(ends | Q(**{f"detail__after__{attribute}": name})).order_by("-id").first()
    ):
        is_freed = first.action == f"{kind}.delete"
        found |= Q(pk__in=mine.filter(id__gte=first.id + is_freed).values("pk"))
        if first.action != f"{kind}.change":
            return AuditEvent.objects.filter(found)
        name = first.detail["before"][attribute]
        mine = rows.filter(id__lt=first.id, **{f"detail__{kind}": name})
    return AuditEvent.objects.filter(found | Q(pk__in=mine.values("pk")))


def _project_of(row: Any) -> Any:
    """The project of the row, or of the controller or the run that it belongs to."""
    owner = row if hasattr(row, "project_id") else getattr(row, "controller", None) or row.run
    return owner.project_id
