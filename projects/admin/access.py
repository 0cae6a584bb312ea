"""Who sees which rows: superusers everything, other staff what belongs to their projects."""

from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

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
        return rows if is_superuser(request) else self.of_members(rows, request.user)

    def of_members(self, rows: QuerySet[M], user: Any) -> QuerySet[M]:
        """``rows`` of the projects ``user`` is a member of."""
        return rows.filter(**{self.members_path: user})

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


def is_superuser(request: HttpRequest) -> bool:
    """Of the user who asks."""
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def actor_of(request: HttpRequest) -> str:
    """How audit rows name the user who asks."""
    return f"admin:{request.user.get_username()}"[:128]
