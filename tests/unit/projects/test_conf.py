"""Settings are read when they are used, typed."""

from typing import Any

from projects.conf import Conf, conf

NAMES = [name for name, member in vars(Conf).items() if isinstance(member, property)]


def test_every_property_is_the_setting_of_its_name(settings: Any) -> None:
    for name in NAMES:
        value = getattr(settings, name.upper())
        assert getattr(conf, name) == (tuple(value) if isinstance(value, list) else value)


def test_a_changed_setting_is_seen_at_once(settings: Any) -> None:
    settings.MAX_WAIT_SECONDS = 7
    assert conf.max_wait_seconds == 7.0
