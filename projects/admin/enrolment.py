"""Pages of enrolment codes and of the credentials of controllers.

A code or a credential is shown once, when it is made.
"""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from projects.admin.parts.access import OfOwnProjects, ReadOnlyAdmin, TypedForm, actor_of
from projects.admin.parts.confirmation import Item, Question, keep_secret, page_before, shown_once
from projects.admin.parts.display import shortened, text_column
from projects.enrolment.codes import (
    NOT_USED_UP,
    check_name,
    enrolment_code_create,
    enrolment_code_withdraw,
)
from projects.enrolment.revocation import controller_credential_revoke
from projects.models import ControllerCredential, EnrolmentCode

_REVOCATION = Question(
    title="Revoke credentials",
    action="revoke",
    confirm="Yes, revoke",
    nothing="None of the selected credentials is active.",
    consequence=(
        "A connection that uses one of them is closed within seconds. Commands that were not "
        "sent to its host yet are dropped."
    ),
)
_WITHDRAWAL = Question(
    title="Withdraw enrolment codes",
    action="withdraw",
    confirm="Yes, withdraw",
    is_for_many=True,
    consequence="No host can enrol with them any more.",
)


class _ManagedAdmin(ReadOnlyAdmin[Any]):
    def has_manage_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.manage_controller")


class EnrolmentCodeForm(TypedForm[EnrolmentCode]):
    """The host that may enrol with a new code."""

    # Empty in the rows of keys, which are not made here.
    controller_name = forms.SlugField()
    is_replacement = forms.BooleanField(
        required=False,
        help_text="The controller exists. Its credentials are revoked when the code is used.",
    )

    class Meta:
        model = EnrolmentCode
        fields = ("project", "controller_name", "is_replacement")

    def clean(self) -> dict[str, Any]:
        """Refuses a name that is taken, or one that is free for a replacement."""
        chosen = super().clean() or {}
        if not self.errors:
            try:
                check_name(
                    chosen["project"],
                    chosen["controller_name"],
                    is_replacement=chosen["is_replacement"],
                )
            except ValueError as error:
                raise forms.ValidationError(str(error)) from None
        return chosen


@admin.register(EnrolmentCode)
class EnrolmentCodeAdmin(_ManagedAdmin):
    """Looking needs ``view_enrolmentcode``, making and withdrawing ``manage_controller``."""

    form = EnrolmentCodeForm
    list_display = (
        "__str__",
        "project",
        "key_id",
        "is_replacement",
        "shown_maker",
        "expires_at",
        "enrolled",
        "used_at",
        "revoked_at",
    )
    list_filter = (("project", OfOwnProjects), "used_at")
    list_select_related = ("project",)
    search_fields = ("controller_name", "key_id")
    actions = ("withdraw",)
    _OLD = (
        "controller_name",
        "project",
        "key_id",
        "is_replacement",
        "hosts",
        "enrolled",
        "shown_labels",
        "shown_maker",
        "created_at",
        "expires_at",
        "used_at",
        "shown_peer",
        "revoked_at",
    )

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        return self.has_manage_permission(request)

    def get_fields(self, _request: HttpRequest, obj: EnrolmentCode | None = None) -> Any:
        return EnrolmentCodeForm.Meta.fields if obj is None else self._OLD

    def save_model(
        self, request: HttpRequest, obj: EnrolmentCode, form: Any, _change: bool
    ) -> None:
        """Has the service make the code and audit it. The code's text stays with this request."""
        chosen = form.cleaned_data
        row, code = enrolment_code_create(
            project=chosen["project"],
            name=chosen["controller_name"],
            is_replacement=chosen["is_replacement"],
            actor=actor_of(request),
        )
        obj.pk = row.pk
        keep_secret(request, code)

    def response_add(
        self, request: HttpRequest, obj: EnrolmentCode, _post_url_continue: str | None = None
    ) -> HttpResponse:
        advice = (
            "On the host, within 15 minutes: holdline-controller enroll --server "
            "wss://…/ws/controller/ --code …"
        )
        title = f"Enrolment code of {shortened(obj.controller_name)}"
        return shown_once(self, request, title, advice)

    @admin.action(description="Withdraw selected codes", permissions=["manage"])
    def withdraw(
        self, request: HttpRequest, queryset: QuerySet[EnrolmentCode]
    ) -> HttpResponse | None:
        unused = list(queryset.filter(NOT_USED_UP, revoked_at__isnull=True))
        items = [
            Item(code.pk, code.controller_name or str(code), f"{code.key_id} of {code.project}")
            for code in unused
        ]
        if page := page_before(self, request, _WITHDRAWAL, items):
            return page
        for code in unused:
            if enrolment_code_withdraw(code=code, actor=actor_of(request)):
                self.message_user(request, f"Withdrawn: {code}", messages.SUCCESS)
        return None

    shown_peer = text_column("used_from", "used from")
    shown_maker = text_column("created_by", "made by")
    shown_labels = text_column("labels", "labels")


@admin.register(ControllerCredential)
class ControllerCredentialAdmin(_ManagedAdmin):
    """Looking needs ``view_controllercredential``, revoking ``manage_controller``."""

    members_path = "controller__project__members"
    list_display = (
        "key_id",
        "controller",
        "project",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = (("controller__project", OfOwnProjects), "revoked_at")
    list_select_related = ("controller__project",)
    search_fields = ("key_id", "controller__name")
    fields = (
        "key_id",
        "controller",
        "shown_instance",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    actions = ("revoke",)

    @admin.action(description="Revoke selected credentials", permissions=["manage"])
    def revoke(
        self, request: HttpRequest, queryset: QuerySet[ControllerCredential]
    ) -> HttpResponse | None:
        rows = queryset.filter(revoked_at__isnull=True).select_related("controller__project")
        active = list(rows)
        items = [
            Item(row.pk, row.key_id, f"of {row.controller} ({row.controller.project})")
            for row in active
        ]
        if page := page_before(self, request, _REVOCATION, items):
            return page
        for row in active:
            controller_credential_revoke(credential=row, actor=actor_of(request))
            self.message_user(
                request, f"Revoked: {row.key_id} of {row.controller}", messages.SUCCESS
            )
        return None

    @admin.display(ordering="controller__project__name")
    def project(self, credential: ControllerCredential) -> str:
        """The project, because controller names are unique in their project only."""
        return str(credential.controller.project)

    shown_instance = text_column("instance_id", "belongs to daemon", empty="nobody yet")
