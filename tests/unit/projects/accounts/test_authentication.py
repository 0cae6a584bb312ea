"""Only a token we issued, that is whole, current and not revoked, names a caller."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from projects.accounts import authentication
from projects.accounts.authentication import (
    SCOPES,
    Caller,
    authenticate_controller,
)
from projects.accounts.credentials import (
    api_token_create,
    controller_create,
    controller_credential_create,
)
from projects.accounts.token_check import authenticate_api_token
from projects.enrolment.revocation import api_token_revoke, controller_credential_revoke
from projects.errors.access import ScopeMissing, Unauthenticated
from projects.link.inbound.hello import hello
from projects.link.inbound.refusals import Revoked
from projects.models import ApiToken, AuditEvent, ControllerCredential, Project
from projects.storage.access import in_database
from tests.support.rows import make_hello

transactional = pytest.mark.django_db(transaction=True)


def _project() -> Project:
    return Project.objects.create(name=f"p-{uuid4().hex[:8]}")


def _token(**options: Any) -> tuple[ApiToken, str]:
    return api_token_create(project=_project(), name="agent", **options)


@transactional
async def test_a_token_names_its_project_and_scopes() -> None:
    row, token = await in_database(_token, scopes=("session:read", "session:start"))
    caller = await authenticate_api_token(f"Bearer {token}")
    assert caller == Caller(
        row.project_id, "token:agent", frozenset({"session:read", "session:start"}), row.id
    )
    assert (await in_database(ApiToken.objects.get, id=row.id)).last_used_at is not None


@transactional
async def test_a_controller_credential_names_its_controller_and_two_may_overlap() -> None:
    def enrol() -> Any:
        controller = controller_create(project=_project(), name="host")
        return (
            controller,
            controller_credential_create(controller=controller),
            controller_credential_create(controller=controller),
        )

    controller, (old, old_token), (_, new_token) = await in_database(enrol)
    assert await authenticate_controller(f"bearer {old_token}") == (controller.id, old.id)
    assert (await authenticate_controller(f"Bearer {new_token}"))[0] == controller.id


def _broken_in_its_secret(token: str) -> str:
    return token[:-1] + ("A" if token[-1] != "A" else "B")


@transactional
@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: None,
        lambda _: "",
        lambda token: token,
        lambda token: f"Basic {token}",
        lambda token: f"Bearer {_broken_in_its_secret(token)}",
        lambda token: f"Bearer {token}x",
        lambda token: f"Bearer hl_0000000000000000_{token[-43:]}",
        lambda token: f"Bearer ctl{token[2:]}",
        lambda _: "Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiJhZG1pbiJ9.",
        lambda token: f"Bearer {token} {token}",
    ],
)
async def test_anything_else_is_refused(spoil: Callable[[str], str | None]) -> None:
    _, token = await in_database(_token)
    with pytest.raises(Unauthenticated):
        await authenticate_api_token(spoil(token))


@transactional
async def test_a_controllers_credential_is_no_api_token_and_the_other_way_round() -> None:
    def make() -> tuple[str, str]:
        controller = controller_create(project=_project(), name="host")
        return controller_credential_create(controller=controller)[1], _token()[1]

    credential, token = await in_database(make)
    with pytest.raises(Unauthenticated):
        await authenticate_api_token(f"Bearer {credential}")
    with pytest.raises(Unauthenticated, match="credential of a host is required") as refused:
        await authenticate_controller(f"Bearer {token}")
    assert "API token" not in refused.value.hint


@transactional
async def test_a_revoked_or_expired_token_is_refused_from_the_next_call_on() -> None:
    row, token = await in_database(_token)
    await authenticate_api_token(f"Bearer {token}")
    await in_database(api_token_revoke, token=row, actor="admin:a")
    with pytest.raises(Unauthenticated):
        await authenticate_api_token(f"Bearer {token}")
    _, expired = await in_database(_token, expires_at=timezone.now() - timedelta(seconds=1))
    with pytest.raises(Unauthenticated):
        await authenticate_api_token(f"Bearer {expired}")


@pytest.mark.django_db
def test_a_revoked_credential_or_controller_can_no_longer_say_hello() -> None:
    controller = controller_create(project=_project(), name="host")
    first, _ = controller_credential_create(controller=controller)
    second, _ = controller_credential_create(controller=controller)
    for _ in range(2):
        controller_credential_revoke(credential=first, actor="admin:a")
    with pytest.raises(Revoked):
        hello(controller.id, make_hello(), first.id)
    with pytest.raises(Revoked):
        hello(controller.id, make_hello(), uuid4())
    assert hello(controller.id, make_hello(), second.id)[0].epoch == 1
    assert AuditEvent.objects.filter(action="controller_credential.revoke").count() == 1
    controller.revoked_at = timezone.now()
    controller.save()
    with pytest.raises(Revoked):
        hello(controller.id, make_hello(), second.id)


@pytest.mark.django_db
def test_the_database_holds_nothing_a_token_could_be_made_of() -> None:
    row, token = _token()
    controller = controller_create(project=row.project, name="host")
    _, credential = controller_credential_create(controller=controller)
    stored = str(
        [list(model.objects.values()) for model in (ApiToken, ControllerCredential, AuditEvent)]
    )
    for text in (token, credential):
        assert text[-43:] not in stored


@pytest.mark.django_db
def test_a_scope_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown scopes session:write"):
        _token(scopes=("session:write",))


@pytest.mark.parametrize("scope", SCOPES)
def test_a_scope_is_needed_and_the_admin_scope_is_all_of_them(scope: str) -> None:
    Caller(uuid4(), "x", frozenset({scope})).require(scope)
    Caller(uuid4(), "x", frozenset({authentication.ADMIN_SCOPE})).require(scope)
    with pytest.raises(ScopeMissing, match=scope.replace("*", r"\*")):
        Caller(uuid4(), "x", frozenset(set(SCOPES) - {scope, authentication.ADMIN_SCOPE})).require(
            scope
        )
