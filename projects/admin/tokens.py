"""API tokens: who can call, never with what. A token is made here, shown once, and revoked here."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from projects.admin.access import OfOwnProjects, ReadOnlyAdmin, actor_of, projects_of
from projects.admin.confirmation import Item, Question, confirmation, is_confirmed, shown_once
from projects.admin.display import shortened, visible
from projects.authentication import ADMIN_SCOPE, AGENT_SCOPES, SCOPES, api_token_create
from projects.models import ApiToken
from projects.revocation import api_token_revoke
from projects.tools.toolsets import TOOLSETS

_REVOCATION = Question(
    title="Revoke API tokens",
    action="revoke",
    confirm="Yes, revoke",
    consequence="Their next call is refused, calls that wait end, and what no host was sent yet is dropped. Programs that run go on.",
)


class ApiTokenForm(forms.ModelForm):  # type: ignore[type-arg]  # takes no parameter when it runs
    """What a new token may do."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES], initial=AGENT_SCOPES, widget=forms.CheckboxSelectMultiple
    )
    toolsets = forms.MultipleChoiceField(
        choices=[(name, name) for name in TOOLSETS], required=False, widget=forms.CheckboxSelectMultiple, help_text="None: every tool."
    )
    days = forms.IntegerField(required=False, min_value=1, max_value=3650, help_text="Expires after so many days; empty: never.")
    is_mine = forms.BooleanField(
        required=False, initial=True, label="Bound to me", help_text="Good for as long as I am active and a member of the project."
    )

    class Meta:
        model = ApiToken
        fields = ("project", "name", "starts_per_minute", "input_bytes_per_minute")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin[ApiToken]):
    """Looking needs ``view_apitoken``, making and revoking ``manage_apitoken``."""

    form = ApiTokenForm
    list_display = ("shown_name", "key_id", "project", "scopes_granted", "tools_granted", "last_used_at", "expires_at", "revoked_at")
    list_filter = (("project", OfOwnProjects), "revoked_at")
    list_select_related = ("project",)
    search_fields = ("name", "key_id")
    actions = ("revoke",)
    _NEW = ("project", "name", "scopes", "toolsets", "days", "is_mine", "starts_per_minute", "input_bytes_per_minute")
    _OLD = (
        *("shown_name", "key_id", "project", "scopes_granted", "tools_granted", "owner", "starts_per_minute", "input_bytes_per_minute"),
        *("created_at", "last_used_at", "expires_at", "revoked_at"),
    )

    def has_manage_permission(self, request: HttpRequest) -> bool:
        """May make and revoke tokens."""
        return request.user.has_perm("projects.manage_apitoken")

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """The same."""
        return self.has_manage_permission(request)

    def get_fields(self, _request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """A form for a new one, all there is to know of an old one."""
        return self._NEW if obj is None else self._OLD

    def formfield_for_foreignkey(self, db_field: Any, request: HttpRequest, **kwargs: Any) -> Any:
        """Of the user's own projects."""
        if db_field.name == "project":
            kwargs["queryset"] = projects_of(request)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def get_form(self, request: HttpRequest, obj: ApiToken | None = None, change: bool = False, **kwargs: Any) -> Any:
        """Only who may do everything gives everything away."""
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None and not getattr(request.user, "is_superuser", False):
            scopes: Any = form.base_fields["scopes"]
            scopes.choices = [(scope, scope) for scope in SCOPES if scope != ADMIN_SCOPE]
        return form

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, _change: bool) -> None:
        """By the service, which audits it; its text stays with this request."""
        chosen = form.cleaned_data
        row, text = api_token_create(
            project=chosen["project"],
            name=chosen["name"],
            scopes=chosen["scopes"],
            toolsets=chosen["toolsets"],
            expires_at=timezone.now() + timedelta(days=chosen["days"]) if chosen["days"] else None,
            starts_per_minute=chosen["starts_per_minute"],
            input_bytes_per_minute=chosen["input_bytes_per_minute"],
            owner=request.user if chosen["is_mine"] and request.user.is_authenticated else None,
            actor=actor_of(request),
        )
        obj.pk, obj.key_id, request.holdline_secret = row.pk, row.key_id, text  # type: ignore[attr-defined]

    def response_add(self, request: HttpRequest, obj: ApiToken, _post_url_continue: str | None = None) -> HttpResponse:
        """The text, this once."""
        advice = "Give it to the client as bearer token; it opens this project only."
        return shown_once(self, request, f"API token {shortened(obj.name)}", request.holdline_secret, advice)  # type: ignore[attr-defined]

    @admin.action(description="Revoke selected API tokens", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> HttpResponse | None:
        """Asks first."""
        active = queryset.filter(revoked_at__isnull=True)
        if not active:
            self.message_user(request, "None of the selected tokens is active.", messages.WARNING)
            return None
        if not is_confirmed(request):
            items = [Item(token.pk, visible(token.name), f"{token.key_id} of {token.project}") for token in active]
            return confirmation(self, request, _REVOCATION, items)
        for token in list(active):
            api_token_revoke(token=token, actor=actor_of(request))
            self.message_user(request, f"Revoked: {shortened(token.name)} ({token.key_id})", messages.SUCCESS)
        return None

    @admin.display(description="name", ordering="name")
    def shown_name(self, token: ApiToken) -> str:
        """What it is for."""
        return shortened(token.name)

    @admin.display(description="scopes")
    def scopes_granted(self, token: ApiToken) -> str:
        """In words."""
        return visible(", ".join(str(scope) for scope in token.scopes))

    @admin.display(description="toolsets")
    def tools_granted(self, token: ApiToken) -> str:
        """In words."""
        return visible(", ".join(str(toolset) for toolset in token.toolsets)) or "all"
