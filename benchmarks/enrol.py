"""Enrol many controllers and print their credentials and tokens as JSON.

``python -m benchmarks.enrol COUNT PROJECTS``, in the environment of a server.
"""

import json
import os
import sys


def _enrol(count: int, projects: int) -> dict[str, tuple[str, str]]:
    """Return, by the name of each controller, its credential and a token of its project."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    from projects.accounts.credentials import (
        api_token_create,
        controller_create,
        controller_credential_create,
    )
    from projects.models import Project

    found = {}
    owners = [
        Project.objects.create(
            name=f"load-{number}", max_interactive_sessions=10_000, max_lifetime_seconds=3600
        )
        for number in range(projects)
    ]
    tokens = [api_token_create(project=project, name="load")[1] for project in owners]
    for number in range(count):
        host = controller_create(project=owners[number % projects], name=f"simulated-{number}")
        found[host.name] = (
            controller_credential_create(controller=host)[1],
            tokens[number % projects],
        )
    return found


if __name__ == "__main__":
    print(json.dumps(_enrol(int(sys.argv[1]), int(sys.argv[2]))))
