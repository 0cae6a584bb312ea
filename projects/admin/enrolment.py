"""How hosts come and go: codes to enrol with, and the credentials they show. Both are shown once, when they are made."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of, projects_of
from projects.admin.confirmation import Item, Question, confirmation, is_confirmed, shown_once
from projects.admin.display import shortened
from projects.audit_log import audit
from projects.enrolment import check_name, enrolment_code_create
from projects.models import ControllerCredential, EnrolmentCode
from projects.revocation import controller_credential_revoke

_REVOCATION = Question(
    title="Revoke credentials",
    action="revoke",
    confirm="Yes, revoke",
    consequence="A connection that showed one of them is closed within seconds, and what its host was not sent yet is dropped.",
)


class _ManagedAdmin(ReadOnlyAdmin[Any]):
    def has_manage_permission(self, request: HttpRequest) -> bool:
        """May enrol hosts and revoke them."""
        return request.user.has_perm("projects.manage_controller")


class EnrolmentCodeForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """For which host."""

    is_replacement = forms.BooleanField(
        required=False, help_text="The controller exists: its credentials are revoked when the code is used."
    )

    class Meta:
        model = EnrolmentCode
        fields = ("project", "controller_name", "is_replacement")

    def clean(self) -> dict[str, Any]:
        """The name must be free, or else taken."""
        chosen = super().clean() or {}
        if not self.errors:
            try:
                check_name(chosen["project"], chosen["controller_name"], is_replacement=chosen["is_replacement"])
            except ValueError as error:
                raise forms.ValidationError(str(error)) from None
        return chosen


@admin.register(EnrolmentCode)
class EnrolmentCodeAdmin(_ManagedAdmin):
    """Looking needs ``view_enrolmentcode``, making and withdrawing ``manage_controller``."""

    form = EnrolmentCodeForm
    list_display = ("controller_name", "project", "key_id", "is_replacement", "shown_maker", "expires_at", "used_at", "revoked_at")
    list_filter = (("project", OfOwnProjects), "used_at")
    list_select_related = ("project",)
    search_fields = ("controller_name", "key_id")
    actions = ("withdraw",)
    _OLD = (
        "controller_name",
        "project",
        "key_id",
        "is_replacement",
        "shown_maker",
        "created_at",
        "expires_at",
        "used_at",
        "shown_peer",
        "revoked_at",
    )

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Whoever may enrol hosts."""
        return self.has_manage_permission(request)

    def get_fields(self, _request: HttpRequest, obj: EnrolmentCode | None = None) -> Any:
        """A form for a new one, all there is to know of an old one."""
        return EnrolmentCodeForm.Meta.fields if obj is None else self._OLD

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Of the user's own projects."""
        if db_field.name == "project":
            kwargs["queryset"] = projects_of(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: EnrolmentCode, form: Any, _change: bool) -> None:
        """By the service, which audits it; its text stays with this request."""
        chosen = form.cleaned_data
        row, code = enrolment_code_create(
            project=chosen["project"],
            name=chosen["controller_name"],
            is_replacement=chosen["is_replacement"],
            actor=actor_of(request),
        )
        obj.pk, request.holdline_secret = row.pk, code  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: EnrolmentCode, _post_url_continue: str | None = None) -> HttpResponse:
        """The code, this once."""
        advice = "On the host, within 15 minutes: holdline-controller enroll --server wss://…/ws/controller/ --code …"
        title = f"Enrolment code of {shortened(obj.controller_name)}"
        return shown_once(self, request, title, request.holdline_secret, advice)  # type: ignore[attr-defined]

    @admin.action(description="Withdraw selected codes", permissions=["manage"])
    def withdraw(self, request: HttpRequest, queryset: QuerySet[EnrolmentCode]) -> None:
        """They enrol nobody from now on."""
        for code in queryset.filter(used_at__isnull=True, revoked_at__isnull=True):
            EnrolmentCode.objects.filter(pk=code.pk).update(revoked_at=timezone.now())
            audit(actor_of(request), "enrolment_code.withdraw", (code.project_id, None, None), {"key_id": code.key_id})
            self.message_user(request, f"Withdrawn: {code}", messages.SUCCESS)

    @admin.display(description="used from")
    def shown_peer(self, code: EnrolmentCode) -> str:
        """The address it was used from."""
        return shortened(code.used_from) or "-"

    @admin.display(description="made by")
    def shown_maker(self, code: EnrolmentCode) -> str:
        """Who made it."""
        return shortened(code.created_by)


@admin.register(ControllerCredential)
class ControllerCredentialAdmin(_ManagedAdmin):
    """Looking needs ``view_controllercredential``, revoking ``manage_controller``."""

    members_path = "controller__project__members"
    list_display = ("key_id", "controller", "project", "created_at", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("controller__project", OfOwnProjects), "revoked_at")
    list_select_related = ("controller__project",)
    search_fields = ("key_id", "controller__name")
    fields = ("key_id", "controller", "shown_instance", "created_at", "last_used_at", "expires_at", "revoked_at")
    actions = ("revoke",)

    @admin.action(description="Revoke selected credentials", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ControllerCredential]) -> HttpResponse | None:
        """Asks first."""
        active = queryset.filter(revoked_at__isnull=True).select_related("controller__project")
        if not active:
            self.message_user(request, "None of the selected credentials is active.", messages.WARNING)
            return None
        if not is_confirmed(request):
            items = [Item(row.pk, row.key_id, f"of {row.controller} ({row.controller.project})") for row in active]
            return confirmation(self, request, _REVOCATION, items)
        for row in list(active):
            controller_credential_revoke(credential=row, actor=actor_of(request))
            self.message_user(request, f"Revoked: {row.key_id} of {row.controller}", messages.SUCCESS)
        return None

    @admin.display(ordering="controller__project__name")
    def project(self, credential: ControllerCredential) -> str:
        """Controller names are unique in their project only."""
        return str(credential.controller.project)

    @admin.display(description="belongs to daemon")
    def shown_instance(self, credential: ControllerCredential) -> str:
        """The daemon that showed it first."""
        return shortened(credential.instance_id) or "nobody yet"
