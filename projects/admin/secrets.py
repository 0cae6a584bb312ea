"""Secrets: written here, read nowhere."""

from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of, sees_every_project
from projects.admin.display import shortened
from projects.models import Controller, Project, Secret
from projects.secret_store import UnusableValue, audit_secret, check_value, secret_delete, secret_seal
from projects.validators import validate_commands


class SecretForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """The value goes in and is never put into a page."""

    value = forms.CharField(
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=False),
        help_text="One line. Stored encrypted and shown to nobody; empty: as it is.",
    )

    class Meta:
        model = Secret
        fields = ("project", "name", "value", "any_controller", "controllers", "allowed_commands", "may_echo")

    def clean_value(self) -> str:
        """A new secret needs one."""
        value = str(self.cleaned_data["value"])
        if value or not self.instance.sealed:
            try:
                check_value(value)
            except UnusableValue as error:
                raise forms.ValidationError(str(error)) from None
        return value

    def clean_allowed_commands(self) -> list[str]:
        """Names of programs, as in a list of allowed commands."""
        programs = self.cleaned_data["allowed_commands"] or []
        validate_commands(programs)
        return list(programs)

    def clean(self) -> dict[str, Any]:
        """Its controllers are of its project."""
        cleaned = super().clean() or {}
        project_id = cleaned["project"].id if "project" in cleaned else self.instance.project_id
        if any(controller.project_id != project_id for controller in cleaned.get("controllers") or ()):
            raise forms.ValidationError("a controller is of another project")
        return cleaned


@admin.register(Secret)
class SecretAdmin(ReadOnlyAdmin[Secret]):
    """Names and terms. Seeing, making, changing and deleting are permissions of their own."""

    form = SecretForm
    list_display = ("name", "project", "any_controller", "shown_commands", "may_echo", "changed_at", "last_used_at")
    list_filter = (("project", OfOwnProjects),)
    list_select_related = ("project",)
    search_fields = ("name",)
    filter_horizontal = ("controllers",)

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Whoever may."""
        return request.user.has_perm("projects.add_secret")

    def has_change_permission(self, request: HttpRequest, _obj: Secret | None = None) -> bool:
        """Whoever may."""
        return request.user.has_perm("projects.change_secret")

    def has_delete_permission(self, request: HttpRequest, _obj: Secret | None = None) -> bool:
        """Whoever may."""
        return request.user.has_perm("projects.delete_secret")

    def get_readonly_fields(self, _request: HttpRequest, obj: Secret | None = None) -> Any:
        """A secret stays what it is called and where it belongs."""
        return () if obj is None else ("project", "name", "created_at", "changed_at", "last_used_at")

    def get_fields(self, request: HttpRequest, obj: Secret | None = None) -> Any:
        """Who may only look is not shown the field for the value either."""
        terms = ("any_controller", "controllers", "allowed_commands", "may_echo")
        may_write = self.has_add_permission(request) if obj is None else self.has_change_permission(request)
        times = () if obj is None else ("created_at", "changed_at", "last_used_at")
        return ("project", "name", *(("value",) if may_write else ()), *terms, *times)

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Only projects of the user's own."""
        if db_field.name == "project":
            kwargs["queryset"] = _of_user(Project.objects.all(), request, "members")
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def formfield_for_manytomany(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Only controllers of these."""
        if db_field.name == "controllers":
            kwargs["queryset"] = _of_user(Controller.objects.select_related("project"), request, "project__members")
        return super().formfield_for_manytomany(db_field, request, **kwargs)

    def save_model(self, request: HttpRequest, obj: Secret, form: Any, change: bool) -> None:
        """With its audit row; Django runs the view in a transaction."""
        if form.cleaned_data["value"]:
            secret_seal(obj, form.cleaned_data["value"])
        super().save_model(request, obj, form, change)
        audit_secret(actor_of(request), "secret.set" if form.cleaned_data["value"] else "secret.change", obj)

    def delete_model(self, request: HttpRequest, obj: Secret) -> None:
        """With its audit row."""
        secret_delete(obj, actor=actor_of(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Secret]) -> None:
        """Each with its audit row."""
        for secret in queryset:
            secret_delete(secret, actor=actor_of(request))

    @admin.display(description="programs")
    def shown_commands(self, secret: Secret) -> str:
        """Into which sessions."""
        return shortened(", ".join(map(str, secret.allowed_commands))) or "any"


def _of_user(rows: Any, request: HttpRequest, members_path: str) -> Any:
    return rows if sees_every_project(request) else rows.filter(**{members_path: request.user})
