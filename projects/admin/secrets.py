"""Pages of secrets. A value can be written here, and is shown nowhere."""

from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest

from projects.admin.parts.access import (
    OfOwnProjects,
    ReadOnlyAdmin,
    TypedForm,
    actor_of,
    projects_of,
)
from projects.admin.parts.display import shortened
from projects.admin.parts.json_box import JSONBox
from projects.models import Controller, Secret
from projects.secrets.store import UnusableValue, check_change, secret_delete, secret_write
from projects.secrets.terms import Terms, UnusableTerms


class SecretForm(TypedForm[Secret]):
    """The value and the terms of a secret. The value is never put into a page."""

    value = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=False),
        help_text=(
            "One line. It is stored encrypted and shown to nobody. Empty: the value stays. Give "
            "it again if the terms allow more than before: more controllers, other commands or "
            "none, or typing where the terminal shows it."
        ),
    )

    class Meta:
        model = Secret
        fields = (
            "project",
            "name",
            "value",
            "any_controller",
            "controllers",
            "allowed_commands",
            "may_echo",
        )
        field_classes: ClassVar = {"allowed_commands": JSONBox}

    def clean_allowed_commands(self) -> list[str]:
        """Checks that the box holds a list of texts. The service checks the texts."""
        entries = self.cleaned_data["allowed_commands"]
        if entries is None:
            return []
        if not isinstance(entries, list) or not all(isinstance(entry, str) for entry in entries):
            raise forms.ValidationError('This has to be a list of texts, such as ["sudo"].')
        return entries

    def clean(self) -> dict[str, Any]:
        """Says beside the form what the service would refuse."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        project = cleaned.get("project") or self.instance.project
        earlier = Secret.objects.filter(id=self.instance.id).first()
        try:
            check_change(earlier, value=self.given_value, terms=self.terms, project=project)
        except UnusableTerms as error:
            raise forms.ValidationError(str(error)) from None
        except UnusableValue as error:
            self.add_error("value", str(error))
        return cleaned

    @property
    def given_value(self) -> str | None:
        """The value to store; None to keep the value that is stored."""
        return self.cleaned_data["value"] or None

    @property
    def terms(self) -> Terms:
        """The terms as the form has them."""
        return Terms(
            any_controller=self.cleaned_data["any_controller"],
            controllers=frozenset(controller.id for controller in self.cleaned_data["controllers"]),
            commands=tuple(self.cleaned_data["allowed_commands"]),
            may_echo=self.cleaned_data["may_echo"],
        )


@admin.register(Secret)
class SecretAdmin(ReadOnlyAdmin[Secret]):
    """Names and terms. To see, make, change and delete needs one permission each."""

    form = SecretForm
    list_display = (
        "name",
        "project",
        "any_controller",
        "shown_commands",
        "may_echo",
        "changed_at",
        "last_used_at",
    )
    list_filter = (("project", OfOwnProjects),)
    list_select_related = ("project",)
    search_fields = ("name",)
    filter_horizontal = ("controllers",)

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        return request.user.has_perm("projects.add_secret")

    def has_change_permission(self, request: HttpRequest, _obj: Secret | None = None) -> bool:
        return request.user.has_perm("projects.change_secret")

    def has_delete_permission(self, request: HttpRequest, _obj: Secret | None = None) -> bool:
        return request.user.has_perm("projects.delete_secret")

    def get_readonly_fields(self, _request: HttpRequest, obj: Secret | None = None) -> Any:
        """Name and project of an existing secret cannot change."""
        return (
            () if obj is None else ("project", "name", "created_at", "changed_at", "last_used_at")
        )

    def get_fields(self, request: HttpRequest, obj: Secret | None = None) -> Any:
        """Leaves the field of the value out for users who may only look."""
        terms = ("any_controller", "controllers", "allowed_commands", "may_echo")
        may_write = (
            self.has_add_permission(request) if obj is None else self.has_change_permission(request)
        )
        times = () if obj is None else ("created_at", "changed_at", "last_used_at")
        return ("project", "name", *(("value",) if may_write else ()), *terms, *times)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Offers controllers of the user's own projects only."""
        if db_field.name == "controllers":
            own = Controller.objects.filter(project__in=projects_of(request))
            kwargs["queryset"] = own.select_related("project")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Secret, form: Any, _change: bool) -> None:
        # Django runs the view in a transaction, which the audit row is a part of.
        secret_write(obj, value=form.given_value, terms=form.terms, actor=actor_of(request))
        for warning in form.terms.warnings():
            self.message_user(request, warning, messages.WARNING)

    def delete_model(self, request: HttpRequest, obj: Secret) -> None:
        secret_delete(obj, actor=actor_of(request))

    @admin.display(description="programs")
    def shown_commands(self, secret: Secret) -> str:
        """The programs that may read the secret."""
        return shortened(", ".join(map(str, secret.allowed_commands))) or "any"
