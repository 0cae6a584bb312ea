"""Pages of users and groups.

Staff may change users of their own projects, and cannot give anybody rights that they lack.
"""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from projects.admin.parts.access import (
    OwnProjects,
    TypedUserAdmin,
    actor_of,
    is_offered_lookup,
    is_superuser,
    projects_of,
    sees_every_project,
)
from projects.admin.parts.changes import changes_of
from projects.admin.parts.history import AuditHistory
from projects.audit.log import audit
from projects.models import Project

admin.site.unregister(User)
admin.site.unregister(Group)


class _ServersHistory(AuditHistory):
    """Histories in the server's own chain, for those who may read that."""

    def may_read_history(self, request: HttpRequest) -> bool:
        return sees_every_project(request) and super().may_read_history(request)


@admin.register(User)
class OwnUserAdmin(_ServersHistory, OwnProjects, TypedUserAdmin[User]):
    """Superusers change everything; others change names and logins, and never permissions."""

    # Fields that give somebody rights, and the name that stands in audit rows.
    _OF_SUPERUSERS = (
        "username",
        "is_staff",
        "is_superuser",
        "groups",
        "user_permissions",
        "last_login",
        "date_joined",
    )

    def get_queryset(self, request: HttpRequest) -> QuerySet[User]:
        rows = super().get_queryset(request)
        return rows if is_superuser(request) else rows.filter(pk__in=users_of(request))

    def has_add_permission(self, request: HttpRequest) -> bool:
        # A new user belongs to no project until a superuser says otherwise.
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, _obj: User | None = None) -> bool:
        # Everything that belongs to the user goes, too, in every project.
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, obj: User | None = None) -> bool:
        """Allows changes only to users who have no right and no project that the editor lacks.

        Whoever sets a password can log in as that user.
        """
        return super().has_change_permission(request, obj) and (
            obj is None or is_superuser(request) or is_no_more(obj, request)
        )

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> Any:
        return (
            super().get_readonly_fields(request, obj)
            if is_superuser(request)
            else self._OF_SUPERUSERS
        )

    def get_list_filter(self, request: HttpRequest) -> Any:
        # A filter by group would name all groups.
        return (
            super().get_list_filter(request) if is_superuser(request) else ("is_staff", "is_active")
        )

    def lookup_allowed(self, lookup: str, value: Any, request: HttpRequest | None = None) -> bool:
        if request is None or not (
            is_superuser(request) or is_offered_lookup(self.get_list_filter(request), lookup)
        ):
            return False
        return super().lookup_allowed(lookup, value, request)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Audits the user once its groups and permissions are stored."""
        super().save_related(request, form, formsets, change)
        _audit(request, "user.change" if change else "user.create", form.instance, changes_of(form))

    def delete_model(self, request: HttpRequest, obj: User) -> None:
        super().delete_model(request, obj)
        _audit(request, "user.delete", obj)

    def user_change_password(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Stores the password and its audit row together. Django's page alone does not."""
        if request.method != "POST":
            return super().user_change_password(request, *args, **kwargs)
        with transaction.atomic():
            return super().user_change_password(request, *args, **kwargs)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Audits a new password. Django's page for that calls no other hook."""
        entry = super().log_change(request, obj, message)
        if (
            request.resolver_match is not None
            and request.resolver_match.url_name == "auth_user_password_change"
        ):
            _audit(request, "user.password", obj)
        return entry


@admin.register(Group)
class OwnGroupAdmin(_ServersHistory, OwnProjects, GroupAdmin):
    """Only superusers change groups: the rights of a group are those of all its members."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return is_superuser(request)

    def has_change_permission(self, request: HttpRequest, _obj: Group | None = None) -> bool:
        return is_superuser(request)

    def has_delete_permission(self, request: HttpRequest, _obj: Group | None = None) -> bool:
        return is_superuser(request)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Audits the group once its permissions are stored."""
        super().save_related(request, form, formsets, change)
        group: Group = form.instance
        detail = {"group": group.name, **changes_of(form)}
        audit(
            actor_of(request),
            "group.change" if change else "group.create",
            (None, None, None),
            detail,
        )

    def delete_model(self, request: HttpRequest, obj: Group) -> None:
        """Audits the members and the permissions that they lose."""
        members = sorted(User.objects.filter(groups=obj).values_list("username", flat=True))
        detail = {
            "group": obj.name,
            "permissions": sorted(map(str, obj.permissions.all())),
            "members": members,
        }
        super().delete_model(request, obj)
        audit(actor_of(request), "group.delete", (None, None, None), detail)


def users_of(request: HttpRequest) -> QuerySet[User]:
    """The users that the editor sees.

    A superuser sees everybody; others see the members of their own projects, without superusers.
    """
    if is_superuser(request):
        return User.objects.all()
    return User.objects.filter(is_superuser=False, projects__in=projects_of(request)).distinct()


def is_no_more(user: User, request: HttpRequest) -> bool:
    """Returns True if ``user`` has no right and no project that the editor lacks.

    The rights of an inactive user count: somebody could make the user active again.
    """
    if user.is_superuser or not rights_of(user) <= rights_of(request.user):
        return False
    return (
        sees_every_project(request)
        or not Project.objects.filter(members=user).exclude(members=request.user.pk).exists()
    )


def rights_of(user: User | AnonymousUser) -> set[int]:
    """The ids of the permissions given to the user and to its groups."""
    given = Permission.objects.filter(user=user.pk).values_list("pk", flat=True)
    return {*given, *Permission.objects.filter(group__user=user.pk).values_list("pk", flat=True)}


def _audit(
    request: HttpRequest, action: str, user: User, changes: dict[str, Any] | None = None
) -> None:
    audit(
        actor_of(request),
        action,
        (None, None, None),
        {"user": user.get_username(), **(changes or {})},
    )
