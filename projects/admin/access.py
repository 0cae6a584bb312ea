"""Who sees which rows: with the permission ``view_all_projects`` everything, other staff what belongs to their projects."""

from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from projects.models import Project

M = TypeVar("M", bound=Model)


if TYPE_CHECKING:
    TypedAdmin = admin.ModelAdmin
else:

    class TypedAdmin(admin.ModelAdmin):
        """Django's class takes no type parameter when it runs."""

        def __class_getitem__(cls, _model: object) -> type[Self]:
            return cls


class ReadOnlyAdmin(TypedAdmin[M]):
    """Rows that are looked at. ``members_path`` leads from a row to the users of its project."""

    members_path = "project__members"
    search_id = ""
    """The field a search for a whole uuid looks at."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        """Only what the user may see; nothing else can be opened, found or acted on."""
        rows = super().get_queryset(request)
        return rows if sees_every_project(request) else self.of_members(rows, request.user)

    def of_members(self, rows: QuerySet[M], user: Any) -> QuerySet[M]:
        """``rows`` of the projects ``user`` is a member of."""
        return rows.filter(**{self.members_path: user})

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """What a filter beside the list offers. Django allows any field: what a page does not show could be guessed letter by letter."""
        filters = self.get_list_filter(request)
        names = [getattr(one, "parameter_name", one[0] if isinstance(one, tuple) else one) for one in filters]
        is_offered = any(lookup == name or lookup.startswith(f"{name}__") for name in names)
        return is_offered and super().lookup_allowed(lookup, value, request)

    def get_search_results(self, request: HttpRequest, queryset: QuerySet[M], search_term: str) -> tuple[QuerySet[M], bool]:
        """A uuid is looked up; anything else is searched as text. (Databases keep uuids in different forms, so text search misses them.)"""
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(**{self.search_id or "pk": wanted}), False

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        """Rows come from services and commands."""
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: M | None = None) -> bool:
        """Nothing is edited here."""
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: M | None = None) -> bool:
        """Nothing is deleted here."""
        return False


class OfOwnProjects(admin.RelatedFieldListFilter):
    """A filter by project, or by something of a project, that names none but the user's own."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        """The choices."""
        path = "pk__in" if field.related_model is Project else "project__in"
        ordering = self.field_admin_ordering(field, request, model_admin)
        return list(field.get_choices(include_blank=False, ordering=ordering, limit_choices_to={path: projects_of(request)}))


def sees_every_project(request: HttpRequest) -> bool:
    """Whether the user who asks sees more than the projects it is a member of: superusers do, and whoever was given that permission."""
    return bool(request.user.is_active and request.user.has_perm("projects.view_all_projects"))


def projects_of(request: HttpRequest) -> QuerySet[Project]:
    """The projects the user who asks may choose from."""
    return Project.objects.all() if sees_every_project(request) else Project.objects.filter(members=request.user.pk)


def actor_of(request: HttpRequest) -> str:
    """How audit rows name the user who asks."""
    return f"admin:{request.user.get_username()}"[:128]
