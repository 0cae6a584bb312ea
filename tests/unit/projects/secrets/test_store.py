"""Secrets: sealed in their row, opened only for who may have them typed, refused in one way."""

import json
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.db.models import BinaryField

from controller_client.protocol.messages import Failure, SendInput
from projects.errors.calls import InvalidArgument
from projects.errors.inputs import InputRefused
from projects.errors.secrets import SecretNotFound
from projects.models import (
    ActionRequest,
    AuditEvent,
    Controller,
    ControllerCommand,
    Project,
    Secret,
)
from projects.models.sealed_field import SealedField
from projects.secrets.masks import secret_mask, secret_remember
from projects.secrets.store import (
    MAX_VALUE_BYTES,
    Typable,
    UnreadableSecret,
    UnusableValue,
    ValueNeeded,
    secret_delete,
    secret_open,
    secret_set,
    secrets_reseal,
)
from projects.secrets.terms import Terms
from projects.sessions.interactive import (
    controller_send_input,
    controller_start_interactive_command,
)
from projects.storage.access import in_database
from projects.storage.sealing import open_sealed
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_controller, make_session

pytestmark = pytest.mark.django_db(transaction=True)

VALUE = "correct horse 'battery' stäple"


@pytest.fixture
async def host(controller: Controller) -> AsyncIterator[ActingHost]:
    async with ActingHost(controller, on_start=lambda _: b"Password: ") as acting:
        acting.kind = "secret"
        acting.on_input = lambda _: b"\r\nwelcome\r\n"
        yield acting


def _set(controller: Controller, value: str = VALUE, **terms: Any) -> Secret:
    return secret_set(
        project=controller.project,
        name="sudo",
        value=value,
        terms=Terms(**{"controllers": {controller.id}, **terms}),
        actor="operator",
    )


def _open(
    controller: Controller,
    command: str = "sudo -k id",
    name: str = "sudo",
    project: Project | None = None,
) -> Typable:
    return secret_open(
        (project or controller.project).id, name, controller_id=controller.id, command=command
    )


def test_a_secret_is_sealed_and_opens_to_what_was_set(controller: Controller) -> None:
    secret = _set(controller)
    assert VALUE.encode() not in bytes(secret.sealed)
    opened = _open(controller)
    assert (opened.value, opened.may_echo) == (VALUE.encode(), False)
    assert "horse" not in repr(opened)
    secret.refresh_from_db()
    assert secret.last_used_at is not None
    again = _set(controller, "another value", commands=("sudo",), may_echo=True)
    assert again.id == secret.id
    assert _open(controller) == Typable(b"another value", may_echo=True, programs=("sudo",))
    events = list(AuditEvent.objects.values_list("action", "actor", "detail"))
    assert events == [("secret.set", "operator", {"name": "sudo"})] * 2


@pytest.mark.parametrize(
    "value",
    [
        "",
        "two\nlines",
        "tab\there",
        "escape\x1b[A",
        "x" * (MAX_VALUE_BYTES + 1),
        "\u00e9" * (MAX_VALUE_BYTES // 2) + "x",
        "nul\0",
        "del\x7f",
        "c1\x9b",
        "a line\x85",
        "end\r",
    ],
)
def test_what_cannot_be_typed_at_a_prompt_is_no_value(controller: Controller, value: str) -> None:
    with pytest.raises(UnusableValue) as error:
        _set(controller, value)
    assert value[:3] == "" or value[:3] not in str(error.value)
    assert not Secret.objects.exists()


@pytest.mark.parametrize(
    "value",
    ["x", " ", " blanks at its ends ", "x" * MAX_VALUE_BYTES, "\u00e9" * (MAX_VALUE_BYTES // 2)],
)
def test_a_value_of_one_line_and_a_kibibyte_is_kept_as_it_is(
    controller: Controller, value: str
) -> None:
    _set(controller, value)
    assert _open(controller).value == value.encode()


def test_every_refusal_is_the_same(controller: Controller) -> None:
    _set(controller, commands=("sudo",))
    elsewhere = make_controller(project=controller.project, name="elsewhere")
    stranger = make_controller(project=Project.objects.create(name="other"), name="h")
    refused = [
        lambda: _open(controller, name="nothing"),
        lambda: _open(elsewhere),
        lambda: _open(stranger),
        lambda: _open(controller, project=stranger.project),
        lambda: _open(controller, command="bash"),
        lambda: _open(controller, command="/tmp/sudo id"),
        lambda: _open(controller, command="sudo -k id | tee /tmp/x"),
        lambda: _open(controller, command="sudo id $(cat /tmp/x)"),
    ]
    texts = set()
    for attempt in refused:
        with pytest.raises(SecretNotFound) as error:
            attempt()
        texts.add(str(error.value).replace("nothing", "sudo"))
    assert len(texts) == 1
    assert _open(controller, command="sudo -k id && sudo true").value == VALUE.encode()


def test_a_refusal_names_what_the_session_can_use(controller: Controller) -> None:
    _set(controller, commands=("sudo",))
    for name, terms in (
        ("db", Terms(any_controller=True)),
        ("far", Terms()),
        ("su", Terms(any_controller=True, commands=("su",))),
    ):
        secret_set(
            project=controller.project, name=name, value=VALUE, terms=terms, actor="operator"
        )
    with pytest.raises(SecretNotFound) as error:
        _open(controller, name="nothing")
    assert "Secrets for this session: db, sudo." in str(error.value.hint)
    with pytest.raises(SecretNotFound) as error:
        _open(controller, name="far", command="bash")
    assert "Secrets for this session: db." in str(error.value.hint)


def test_terms_that_allow_more_need_the_value_and_others_do_not(controller: Controller) -> None:
    secret = _set(controller, commands=("sudo",))
    for wider in (
        Terms(any_controller=True, commands=("sudo",)),
        Terms(controllers={controller.id}),
    ):
        with pytest.raises(ValueNeeded):
            secret_set(
                project=controller.project, name="sudo", value=None, terms=wider, actor="operator"
            )
    assert _open(controller).programs == ("sudo",)
    narrower = Terms(controllers={controller.id}, commands=("sudo id",))
    secret_set(
        project=controller.project, name="sudo", value=None, terms=narrower, actor="operator"
    )
    assert _open(controller, "sudo id").value == VALUE.encode()
    with pytest.raises(SecretNotFound):
        _open(controller, "sudo -k id")
    assert [event.action for event in AuditEvent.objects.order_by("id")] == [
        "secret.set",
        "secret.change",
    ]
    with pytest.raises(ValueNeeded):
        secret_set(
            project=controller.project, name="new", value=None, terms=narrower, actor="operator"
        )
    assert secret.name == "sudo"


def test_a_secret_of_before_that_may_echo_for_anything_may_not_any_more(
    controller: Controller,
) -> None:
    secret = _set(controller)
    Secret.objects.filter(id=secret.id).update(may_echo=True)
    assert _open(controller) == Typable(VALUE.encode())


def test_any_controller_means_any_of_the_project(controller: Controller) -> None:
    _set(controller, controllers=(), any_controller=True)
    elsewhere = make_controller(project=controller.project, name="elsewhere")
    assert _open(elsewhere).value == VALUE.encode()


def test_a_sealed_value_opens_in_its_own_row_only(controller: Controller) -> None:
    secret = _set(controller)
    cheap = secret_set(
        project=controller.project,
        name="cheap",
        value="anything",
        terms=Terms(any_controller=True),
        actor="operator",
    )
    Secret.objects.filter(id=cheap.id).update(sealed=secret.sealed)
    with pytest.raises(SecretNotFound):
        _open(controller, name="cheap")
    Secret.objects.filter(id=cheap.id).update(sealed=b"nothing that was sealed")
    with pytest.raises(SecretNotFound):
        _open(controller, name="cheap")


def test_keys_are_changed_without_losing_a_secret(controller: Controller, settings: Any) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    _set(controller)
    settings.ENCRYPTION_KEYS = [new, old]
    assert secrets_reseal() == (1, 0)
    settings.ENCRYPTION_KEYS = [new]
    assert _open(controller).value == VALUE.encode()
    settings.ENCRYPTION_KEYS = [old]
    with pytest.raises(UnreadableSecret):
        secrets_reseal()
    with pytest.raises(SecretNotFound):
        _open(controller)


def test_what_was_typed_is_masked_after_the_keys_are_changed(
    controller: Controller, settings: Any
) -> None:
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.ENCRYPTION_KEYS = [old]
    session = make_session(controller)
    secret_remember(session.id, VALUE.encode())
    settings.ENCRYPTION_KEYS = [new, old]
    assert secrets_reseal() == (0, 1)
    settings.ENCRYPTION_KEYS = [new]
    assert VALUE not in secret_mask(session.id).masked(f"say {VALUE}.")
    settings.ENCRYPTION_KEYS = [old]
    with pytest.raises(UnreadableSecret, match=f"sealed secrets of CommandSession {session.id}"):
        secrets_reseal()


def test_every_sealed_column_is_known_as_one() -> None:
    """All bytes that are kept; one that is new belongs on one side."""
    fields = [field for model in apps.get_models() for field in model._meta.fields]
    kept = {
        f"{field.model.__name__}.{field.name}": field
        for field in fields
        if isinstance(field, BinaryField)
    }
    sealed = {name for name, field in kept.items() if isinstance(field, SealedField)}
    assert sealed == {
        "Secret.sealed",
        "ControllerCommand.body",
        "CommandSession.sealed_secrets",
        "SecondFactor.sealed_key",
        "AgentStep.sealed",
        "Approval.sealed_arguments",
        "AttentionTarget.sealed_address",
        "AttentionTarget.sealed_key",
    }
    assert kept.keys() - sealed == {
        "OutputChunk.data",
        "RecordingScreen.state",
        "MonitorChunk.data",
        "FileRequest.body",
        "FileRequest.answer",
    }


def test_a_deleted_secret_is_gone_and_on_record(controller: Controller) -> None:
    secret_delete(_set(controller), actor="admin:ada")
    with pytest.raises(SecretNotFound):
        _open(controller)
    assert AuditEvent.objects.order_by("-id")[0].action == "secret.delete"


async def test_a_named_secret_is_typed_with_enter_and_leaves_its_name_only(
    controller: Controller, host: ActingHost
) -> None:
    await in_database(_set, controller)
    started = await controller_start_interactive_command(controller.project_id, "sudo -k id")
    answered = await controller_send_input(
        controller.project_id, started.session_id, secret="sudo", request_id=uuid4()
    )
    assert answered.output == "\nwelcome\n"
    typed = host.commands[1]
    assert isinstance(typed, SendInput)
    assert (typed.data, typed.secret, typed.may_echo) == (b"", VALUE.encode() + b"\n", False)
    assert "horse" not in repr(typed)

    def recorded() -> tuple[list[Any], str]:
        details = list(
            AuditEvent.objects.filter(action="session.input").values_list("detail", flat=True)
        )
        return details, json.dumps(
            [
                list(model.objects.values())
                for model in (AuditEvent, ActionRequest, ControllerCommand)
            ],
            default=repr,
        )

    details, text = await in_database(recorded)
    assert details == [{"input_seq": 1, "secret": "sudo"}]
    assert "horse" not in text


async def test_a_daemon_of_before_is_sent_no_secret(
    controller: Controller, host: ActingHost
) -> None:
    await in_database(_set, controller)
    started = await controller_start_interactive_command(controller.project_id, "sudo -k id")
    await in_database(
        lambda: Controller.objects.filter(id=controller.id).update(capabilities=["pty"])
    )
    with pytest.raises(InputRefused) as refused:
        await controller_send_input(controller.project_id, started.session_id, secret="sudo")
    assert refused.value.code == "HOST_TOO_OLD"
    assert "upgraded" in str(refused.value)
    assert len(host.commands) == 1


async def test_the_value_on_its_way_is_sealed_and_wiped_when_it_arrived(
    controller: Controller,
) -> None:
    await in_database(_set, controller, commands=("sudo",), may_echo=True)
    async with ActingHost(controller, on_start=lambda _: b"? ") as host:
        started = await controller_start_interactive_command(controller.project_id, "sudo -k id")
    # Nobody takes it for now.
    await controller_send_input(
        controller.project_id, started.session_id, secret="sudo", wait_seconds=0
    )

    def body() -> bytes | None:
        value = ControllerCommand.objects.order_by("-id")[0].body
        return None if value is None else bytes(value)

    sealed = await in_database(body)
    assert sealed is not None
    assert b"horse" not in sealed
    assert b"may_echo" in open_sealed(sealed)
    host.on_input = lambda _: Failure(
        code="NOT_ASKING_FOR_SECRET", message="the terminal is not asking"
    )
    async with host:
        with pytest.raises(InputRefused) as refused:
            await controller_send_input(controller.project_id, started.session_id, secret="sudo")
    assert refused.value.code == "NOT_ASKING_FOR_SECRET"
    assert await in_database(body) is None


@pytest.mark.parametrize(
    "more", [{"input_text": "x"}, {"keys": ["enter"]}, {"eof": True}, {"terminate": True}]
)
async def test_a_secret_is_typed_alone(
    controller: Controller, host: ActingHost, more: dict[str, Any]
) -> None:
    await in_database(_set, controller)
    started = await controller_start_interactive_command(controller.project_id, "sudo -k id")
    with pytest.raises(InvalidArgument):
        await controller_send_input(
            controller.project_id, started.session_id, secret="sudo", **more
        )
    assert len(host.commands) == 1
