"""Enrols many controllers. Run with a server's environment: ``python -m benchmarks.enrol COUNT`` prints their credentials as JSON."""

import json
import os
import sys


def _enrol(count: int) -> dict[str, str]:
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    from projects.authentication import controller_create, controller_credential_create
    from projects.models import Project

    project = Project.objects.get(name="first")
    hosts = [controller_create(project=project, name=f"simulated-{number}") for number in range(count)]
    return {host.name: controller_credential_create(controller=host)[1] for host in hosts}


if __name__ == "__main__":
    print(json.dumps(_enrol(int(sys.argv[1]))))
