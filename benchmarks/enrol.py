"""Enrols many controllers: ``python -m benchmarks.enrol COUNT PROJECTS`` in a server's environment prints credentials and tokens."""

import json
import os
import sys


def _enrol(count: int, projects: int) -> dict[str, tuple[str, str]]:
    """Name of each controller: its credential, and a token of its project."""
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    from projects.authentication import api_token_create, controller_create, controller_credential_create
    from projects.models import Project

    found = {}
    owners = [Project.objects.create(name=f"load-{number}", max_interactive_sessions=10_000) for number in range(projects)]
    tokens = [api_token_create(project=project, name="load")[1] for project in owners]
    for number in range(count):
        host = controller_create(project=owners[number % projects], name=f"simulated-{number}")
        found[host.name] = (controller_credential_create(controller=host)[1], tokens[number % projects])
    return found


if __name__ == "__main__":
    print(json.dumps(_enrol(int(sys.argv[1]), int(sys.argv[2]))))
