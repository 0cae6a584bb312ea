"""Pages of API tokens. A token is made here, shown once, and revoked here."""

from copy import deepcopy
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from projects.accounts.authentication import ADMIN_SCOPE, AGENT_SCOPES, SCOPES
from projects.accounts.credentials import api_token_create
from projects.accounts.toolsets import TOOLSETS
from projects.admin.parts.access import (
    OfOwnProjects,
    ReadOnlyAdmin,
    TypedForm,
    actor_of,
    is_superuser,
)
from projects.admin.parts.confirmation import Item, Question, keep_secret, page_before, shown_once
from projects.admin.parts.display import shortened, text_column, visible
from projects.enrolment.revocation import api_token_revoke
from projects.models import ApiToken
from projects.storage import clock

_REVOCATION = Question(
    title="Revoke API tokens",
    action="revoke",
    confirm="Yes, revoke",
    nothing="None of the selected tokens is active.",
    consequence=(
        "Their next calls are refused, their waiting calls end, and commands that were not sent "
        "to a host yet are dropped. Running programs keep running."
    ),
)
# Whoever gives a token one of these scopes must have the permission to do the same in the admin.
# Every other scope may be given by whoever may make tokens.
_PERMISSIONS = {
    "session:kill": "projects.terminate_session",
    "secret:use": "projects.change_secret",
    "monitor:delete": "projects.clear_output",
}


def _may_give(request: HttpRequest, scope: str) -> bool:
    if scope == ADMIN_SCOPE:
        return is_superuser(request)
    return scope not in _PERMISSIONS or request.user.has_perm(_PERMISSIONS[scope])


class ApiTokenForm(TypedForm[ApiToken]):
    """The rights and limits of a new token."""

    scopes = forms.MultipleChoiceField(
        choices=[(scope, scope) for scope in SCOPES],
        initial=AGENT_SCOPES,
        widget=forms.CheckboxSelectMultiple,
    )
    toolsets = forms.MultipleChoiceField(
        choices=[(name, name) for name in TOOLSETS],
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text="Without a choice: every tool.",
    )
    days = forms.IntegerField(
        required=False,
        min_value=1,
        max_value=3650,
        help_text="The token expires after this many days. Empty: never.",
    )
    is_mine = forms.BooleanField(
        required=False,
        initial=True,
        label="Bound to me",
        help_text="Valid while I am active and a member of the project.",
    )

    class Meta:
        model = ApiToken
        fields = ("project", "name", "starts_per_minute", "input_bytes_per_minute", "approvals")


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin[ApiToken]):
    """Looking needs ``view_apitoken``, making and revoking ``manage_apitoken``."""

    form = ApiTokenForm
    list_display = (
        "shown_name",
        "key_id",
        "project",
        "scopes_granted",
        "tools_granted",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )
    list_filter = (("project", OfOwnProjects), "revoked_at")
    list_select_related = ("project",)
    search_fields = ("name", "key_id")
    actions = ("revoke",)
    _NEW = (
        "project",
        "name",
        "scopes",
        "toolsets",
        "days",
        "is_mine",
        "starts_per_minute",
        "input_bytes_per_minute",
        "approvals",
    )
    _OLD = (
        "shown_name",
        "key_id",
        "project",
        "scopes_granted",
        "tools_granted",
        "owner",
        "starts_per_minute",
        "input_bytes_per_minute",
        "approvals",
        "created_at",
        "last_used_at",
        "expires_at",
        "revoked_at",
    )

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("projects.manage_apitoken")

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        return self.has_manage_permission(request)

    def get_fields(self, _request: HttpRequest, obj: ApiToken | None = None) -> Any:
        return self._NEW if obj is None else self._OLD

    def get_form(
        self, request: HttpRequest, obj: ApiToken | None = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """Offers only the scopes that the user may give."""
        form = super().get_form(request, obj, change, **kwargs)
        if obj is None:
            # The form's class is of this request, and its fields are those of every request.
            scopes: Any = deepcopy(form.base_fields["scopes"])
            form.base_fields["scopes"] = scopes
            allowed = [scope for scope in SCOPES if _may_give(request, scope)]
            scopes.choices = [(scope, scope) for scope in allowed]
            scopes.initial = [scope for scope in AGENT_SCOPES if scope in allowed]
        return form

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, _change: bool) -> None:
        """Has the service make the token and audit it. Its text stays with this request."""
        chosen = form.cleaned_data
        if not all(_may_give(request, scope) for scope in chosen["scopes"]):
            raise PermissionDenied
        row, text = api_token_create(
            project=chosen["project"],
            name=chosen["name"],
            scopes=chosen["scopes"],
            toolsets=chosen["toolsets"],
            expires_at=clock.now() + timedelta(days=chosen["days"]) if chosen["days"] else None,
            starts_per_minute=chosen["starts_per_minute"],
            input_bytes_per_minute=chosen["input_bytes_per_minute"],
            approvals=chosen["approvals"],
            owner=request.user if chosen["is_mine"] and request.user.is_authenticated else None,
            actor=actor_of(request),
        )
        obj.pk, obj.key_id = row.pk, row.key_id
        keep_secret(request, text)

    def response_add(
        self, request: HttpRequest, obj: ApiToken, _post_url_continue: str | None = None
    ) -> HttpResponse:
        advice = "Give it to the client as its bearer token. It opens this project only."
        return shown_once(self, request, f"API token {shortened(obj.name)}", advice)

    @admin.action(description="Revoke selected API tokens", permissions=["manage"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> HttpResponse | None:
        active = list(queryset.filter(revoked_at__isnull=True))
        items = [
            Item(token.pk, visible(token.name), f"{token.key_id} of {token.project}")
            for token in active
        ]
        if page := page_before(self, request, _REVOCATION, items):
            return page
        for token in active:
            api_token_revoke(token=token, actor=actor_of(request))
            self.message_user(
                request, f"Revoked: {shortened(token.name)} ({token.key_id})", messages.SUCCESS
            )
        return None

    shown_name = text_column("name", "name", is_sortable=True)

    @admin.display(description="scopes")
    def scopes_granted(self, token: ApiToken) -> str:
        return visible(", ".join(str(scope) for scope in token.scopes))

    @admin.display(description="toolsets")
    def tools_granted(self, token: ApiToken) -> str:
        return visible(", ".join(str(toolset) for toolset in token.toolsets)) or "all"
