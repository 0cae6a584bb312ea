"""A target's key stays with the host and the way that it was set for."""

from base64 import b64encode
from typing import Any

import pytest
from django.core.exceptions import ValidationError

from projects.attention.targets import (
    KEY_PREFIX,
    MAX_ADDRESS_CHARS,
    UnusableTarget,
    Way,
    check_address,
    check_key,
    opened,
    target_delete,
    target_save,
)
from projects.models import AttentionTarget, AuditEvent, Controller

pytestmark = pytest.mark.django_db


def _set(target: AttentionTarget, address: str, key: str | None = None) -> str:
    """The key of the target after it was set."""
    target_save(target, address=address, key=key, actor="test")
    return opened(AttentionTarget.objects.get(pk=target.pk)).key


def _target(host: Controller, way: Way, name: str = "ops") -> AttentionTarget:
    return AttentionTarget(project=host.project, name=name, way=way)


def test_a_key_goes_to_no_other_host(controller: Controller) -> None:
    target = _target(controller, Way.NTFY)
    assert _set(target, "https://ntfy.example/ops", "tk_1") == "tk_1"
    assert _set(target, "https://ntfy.example/others") == "tk_1"
    assert _set(target, "https://elsewhere.example/ops") == ""


def test_a_key_serves_no_other_way(controller: Controller) -> None:
    target = _target(controller, Way.WEBHOOK)
    signing = _set(target, "https://one.example/hook")
    # It only signs: no host is shown it.
    assert _set(target, "https://two.example/hook") == signing
    target.way = Way.NTFY
    assert _set(target, "https://two.example/hook") == ""
    target.way = Way.WEBHOOK
    assert _set(target, "https://two.example/hook") not in {"", signing}


@pytest.mark.parametrize("name", ["two words", "", "x" * 65])
def test_a_name_is_one_word(controller: Controller, name: str) -> None:
    with pytest.raises(ValidationError):
        _set(_target(controller, Way.WEBHOOK, name), "https://example.com/hook")


@pytest.mark.parametrize(
    ("way", "address", "place"),
    [
        (Way.EMAIL, "ops@Example.com", "Example.com"),
        (Way.WEBHOOK, "https://Example.com:8443/a?b=c", "example.com"),
        (Way.NTFY, "https://ntfy.example/up/ops", "ntfy.example"),
        (Way.WEBHOOK, "https://a.example/" + "x" * (MAX_ADDRESS_CHARS - 18), "a.example"),
    ],
)
def test_a_target_is_shown_by_its_host_alone(way: Way, address: str, place: str) -> None:
    assert check_address(way, address) == place


@pytest.mark.parametrize(
    ("way", "address"),
    [
        (Way.EMAIL, "ops"),
        (Way.EMAIL, "ops@example.com,eve@example.com"),
        (Way.WEBHOOK, "https://a.example/" + "x" * (MAX_ADDRESS_CHARS - 17)),
        (Way.WEBHOOK, "https://a.example/#part"),
        (Way.WEBHOOK, "https://a.example:port/"),
        (Way.WEBHOOK, "https://\N{LATIN SMALL LETTER E WITH ACUTE}.example/"),
        (Way.WEBHOOK, "https://a.example/\r\nx"),
        (Way.NTFY, "https://ntfy.example/"),
        (Way.NTFY, "https://ntfy.example/ops?auth=x"),
    ],
)
def test_what_is_no_single_place_is_no_address(way: Way, address: str) -> None:
    with pytest.raises(UnusableTarget):
        check_address(way, address)


def _signing(size: int) -> str:
    return KEY_PREFIX + b64encode(b"k" * size).decode()


@pytest.mark.parametrize(
    ("way", "key", "is_usable"),
    [
        (Way.WEBHOOK, _signing(23), False),
        (Way.WEBHOOK, _signing(24), True),
        (Way.WEBHOOK, _signing(64), True),
        (Way.WEBHOOK, _signing(65), False),
        (Way.WEBHOOK, "tk_1", False),
        (Way.NTFY, "tk_1", True),
        (Way.NTFY, "tk_1\r\nx: y", False),
        (Way.NTFY, "tk_\N{LATIN SMALL LETTER E WITH ACUTE}", False),
    ],
)
def test_a_key_is_one_that_its_way_can_use(way: Way, key: str, is_usable: bool) -> None:
    if is_usable:
        check_key(way, key)
        return
    with pytest.raises(UnusableTarget):
        check_key(way, key)


@pytest.mark.parametrize("kinds", [["host_away", "nothing"], "host_away", {"host_away": 1}, [3]])
def test_only_kinds_that_people_can_be_told_are_stored(controller: Controller, kinds: Any) -> None:
    target = _target(controller, Way.NTFY)
    target.kinds = kinds
    with pytest.raises(UnusableTarget):
        _set(target, "https://ntfy.example/ops")
    assert not AttentionTarget.objects.exists()


def test_what_is_not_given_stays_and_an_empty_key_is_taken_away(controller: Controller) -> None:
    target = _target(controller, Way.NTFY)
    _set(target, "https://ntfy.example/ops", "tk_1")
    target.kinds = ["host_away", "resolved"]
    assert target_save(target, address=None, key=None, actor="test") is None
    assert opened(AttentionTarget.objects.get()).address == "https://ntfy.example/ops"
    assert opened(AttentionTarget.objects.get()).key == "tk_1"
    assert _set(target, "https://ntfy.example/ops", "") == ""


@pytest.mark.parametrize("way", [Way.NTFY, Way.EMAIL, Way.SLACK])
def test_an_address_serves_no_other_way(controller: Controller, way: Way) -> None:
    target = _target(controller, Way.WEBHOOK)
    with pytest.raises(UnusableTarget):
        target_save(target, address=None, key=None, actor="test")
    assert not AttentionTarget.objects.exists()
    _set(target, "https://example.com/hook")
    target.way = way
    with pytest.raises(UnusableTarget):
        target_save(target, address=None, key=None, actor="test")
    assert AttentionTarget.objects.get().way == Way.WEBHOOK


def test_every_change_of_a_target_is_audited_by_what_it_was(controller: Controller) -> None:
    target = _target(controller, Way.NTFY)
    _set(target, "https://ntfy.example/ops")
    _set(target, "https://ntfy.example/others")
    target_delete(target, actor="test")
    rows = AuditEvent.objects.order_by("seq").values_list("action", "project_id")
    assert list(rows) == [
        (f"attention_target.{done}", controller.project_id)
        for done in ("create", "change", "delete")
    ]
