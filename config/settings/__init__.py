"""Django's settings: ``base`` for one machine, ``production`` for many, ``test`` for tests."""

from projects.conf.setting import Environment

environment = Environment()
"""The variables of this process; shared, so that all problems end up in one error."""
