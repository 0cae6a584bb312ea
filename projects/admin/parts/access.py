"""The rows that a member of staff sees: those of their own projects.

With the permission ``view_all_projects`` they see the rows of every project.
"""

from collections.abc import Collection, Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.auth import get_user
from django.contrib.auth.admin import UserAdmin
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from projects.admin.parts.careful_filters import CarefulFilters, OfOneField
from projects.admin.parts.history import AuditHistory
from projects.audit.log import person
from projects.errors.base import Forbidden
from projects.models import Project

M = TypeVar("M", bound=Model)


if TYPE_CHECKING:
    TypedAdmin = admin.ModelAdmin
    TypedForm = forms.ModelForm
    TypedUserAdmin = UserAdmin
else:

    class _TakesModel:
        """Django's classes take no type parameter when they run."""

        def __class_getitem__(cls, _model: object) -> type[Self]:
            return cls

    class TypedAdmin(_TakesModel, admin.ModelAdmin):
        """Django's admin class of one model."""

    class TypedForm(_TakesModel, forms.ModelForm):
        """Django's form of one model."""

    class TypedUserAdmin(_TakesModel, UserAdmin):
        """Django's admin class of users."""


class OwnProjects(CarefulFilters):
    """A mixin for pages with a form: it offers the user's own projects only.

    Rows that are deleted together are deleted one by one, so that each leaves its audit row.
    """

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        if db_field.name == "project":
            kwargs["queryset"] = projects_of(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for row in queryset:
            # Each row goes with its audit row, and keeps other writers no longer than that.
            with transaction.atomic():
                self.delete_model(request, row)


class ReadOnlyAdmin(OwnProjects, AuditHistory, TypedAdmin[M]):
    """Pages of rows that nobody edits, adds or deletes unless a derived class says so.

    ``members_path`` leads from a row to the members of its project.
    """

    members_path = "project__members"
    search_id = ""
    """The field that a search for a whole UUID looks at; empty for the primary key."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[M]:
        rows = super().get_queryset(request)
        return rows if sees_every_project(request) else self.of_members(rows, request.user)

    def of_members(self, rows: QuerySet[M], user: Any) -> QuerySet[M]:
        return rows.filter(**{self.members_path: user})

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest) -> bool:
        """Allows only lookups that a filter beside the list offers.

        Django allows lookups of any field. Somebody could guess a field letter by letter that the
        page does not show.
        """
        return is_offered_lookup(self.get_list_filter(request), lookup) and super().lookup_allowed(
            lookup, value, request
        )

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[M], search_term: str
    ) -> tuple[QuerySet[M], bool]:
        """Looks up a UUID, and searches for anything else as text.

        Databases store UUIDs in different forms, so a search for text would miss them.
        """
        try:
            wanted = UUID(search_term.strip())
        except ValueError:
            return super().get_search_results(request, queryset, search_term)
        return queryset.filter(**{self.search_id or "pk": wanted}), False

    def has_add_permission(self, _request: HttpRequest, *_args: Any) -> bool:
        return False

    def has_change_permission(self, _request: HttpRequest, _obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, _request: HttpRequest, _obj: M | None = None) -> bool:
        return False


class OfOwnProjects(OfOneField):
    """A filter by project, or by a row of a project, that names the user's own projects only."""

    def field_choices(self, field: Any, request: HttpRequest, model_admin: Any) -> Any:
        path = "pk__in" if field.related_model is Project else "project__in"
        ordering = self.field_admin_ordering(field, request, model_admin)
        return list(
            field.get_choices(
                include_blank=False,
                ordering=ordering,
                limit_choices_to={path: projects_of(request)},
            )
        )


def is_offered_lookup(filters: Any, lookup: str) -> bool:
    """Returns True if one of the filters of a list uses this field."""
    names = [
        getattr(one, "parameter_name", one[0] if isinstance(one, tuple) else one) for one in filters
    ]
    return any(lookup == name or lookup.startswith(f"{name}__") for name in names)


def is_superuser(request: HttpRequest) -> bool:
    """Returns True if the user is an active superuser."""
    return bool(request.user.is_active and getattr(request.user, "is_superuser", False))


def sees_every_project(request: HttpRequest) -> bool:
    """Returns True for superusers, and for users with the permission ``view_all_projects``."""
    return bool(request.user.is_active and request.user.has_perm("projects.view_all_projects"))


def projects_of(request: HttpRequest) -> QuerySet[Project]:
    """The projects that the user sees and may choose from."""
    return (
        Project.objects.all()
        if sees_every_project(request)
        else Project.objects.filter(members=request.user.pk)
    )


def require_still(request: HttpRequest, projects: Collection[UUID], *rights: str) -> None:
    """Reads the login, and its rights in these projects, anew during an answer that takes long.

    Raises Forbidden once the person may not go on.
    """
    now = HttpRequest()
    sessions = import_module(settings.SESSION_ENGINE)
    now.session = sessions.SessionStore(request.session.session_key)
    user: Any = get_user(now)
    now.user = user
    # Of the whole login, as every page of the admin asks for it.
    may = admin.site.has_permission(now) and user.has_perms(rights)
    if not (may and (sees_every_project(now) or set(projects) <= set(_ids_of(now)))):
        raise Forbidden("you may not read this any more")


def _ids_of(request: HttpRequest) -> Iterable[UUID]:
    return projects_of(request).values_list("pk", flat=True)


def actor_of(request: HttpRequest) -> str:
    """The name of the user in audit rows."""
    return person(request.user.get_username())
