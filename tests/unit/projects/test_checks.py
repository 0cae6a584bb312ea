"""A configuration that cannot work is refused at start."""

from typing import Any

import pytest
from django.core.checks import run_checks

pytestmark = pytest.mark.django_db


def _ids() -> set[str | None]:
    return {message.id for message in run_checks()}


def test_the_tests_own_configuration_has_nothing_wrong_with_it() -> None:
    assert {found for found in _ids() if str(found).startswith("holdline.")} == set()


@pytest.mark.parametrize(
    ("changed", "check_id"),
    [
        ({"ENCRYPTION_KEYS": ["not a key"]}, "holdline.E001"),
        ({"HEARTBEAT_SECONDS": 30.0}, "holdline.E002"),
        ({"LEASE_SECONDS": 5.0}, "holdline.E002"),
        ({"MAX_WAIT_SECONDS": 120.0}, "holdline.W001"),
        ({"SAFETY_NET_SECONDS": 10.0}, "holdline.W002"),
    ],
)
def test_each_mistake_has_its_own_id(settings: Any, changed: dict[str, Any], check_id: str) -> None:
    for name, value in changed.items():
        setattr(settings, name, value)
    assert check_id in _ids()
