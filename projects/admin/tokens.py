"""API tokens: who can call, never with what (the secret is stored nowhere)."""

from django.contrib import admin

from projects.admin.access import ReadOnlyAdmin
from projects.models import ApiToken


@admin.register(ApiToken)
class ApiTokenAdmin(ReadOnlyAdmin[ApiToken]):
    """Made by ``manage.py create_api_token``."""

    list_display = ("name", "key_id", "project", "scopes_granted", "tools_granted", "last_used_at", "expires_at", "revoked_at")
    list_filter = ("project", "revoked_at")
    list_select_related = ("project",)
    search_fields = ("name", "key_id")
    fields = ("name", "key_id", "project", "scopes_granted", "tools_granted", "created_at", "last_used_at", "expires_at", "revoked_at")

    @admin.display(description="scopes")
    def scopes_granted(self, token: ApiToken) -> str:
        """In words."""
        return ", ".join(str(scope) for scope in token.scopes)

    @admin.display(description="toolsets")
    def tools_granted(self, token: ApiToken) -> str:
        """In words."""
        return ", ".join(str(toolset) for toolset in token.toolsets) or "all"
