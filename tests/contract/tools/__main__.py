"""Writes the published form of every tool and the reference page: ``python -m
tests.contract.tools``.
"""

import os

import django


def main() -> None:
    """Django first: the registry imports models."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    django.setup()
    from tests.contract.tools.reference import write

    write()


if __name__ == "__main__":
    main()
