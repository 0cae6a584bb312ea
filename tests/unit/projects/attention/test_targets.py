"""A target's key stays with the host and the way that it was set for."""

import pytest
from django.core.exceptions import ValidationError

from projects.attention.targets import Way, opened, target_save
from projects.models import AttentionTarget, Controller

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
