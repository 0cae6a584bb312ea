"""``manage.py hosts``: list the hosts, which state each is in, and which are outdated."""

import json
from argparse import ArgumentParser
from typing import Any

from projects.management.naming import printable, project_named
from projects.management.refusals import RefusingCommand
from projects.models import Controller
from projects.reads.hosts import STATES, in_state, is_outdated, state_of, with_label


class Command(RefusingCommand):
    help = "List the hosts of all projects, or of one: name, state, version, labels."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("project", nargs="?", help="name of a project")
        parser.add_argument("--state", choices=STATES, default="", help="only hosts like this")
        parser.add_argument("--label", help="only hosts with this label")
        parser.add_argument("--json", action="store_true", help="one JSON array")

    def handle(self, *, project: str | None, state: str, label: str | None, **options: Any) -> None:
        rows = in_state(Controller.objects.select_related("project"), state)
        if project:
            rows = rows.filter(project=project_named(project))
        if label:
            rows = with_label(rows, label)
        found = [_facts(host) for host in rows.order_by("project__name", "name")]
        if options["json"]:
            self.stdout.write(json.dumps(found))
            return
        for host in found:
            old = " (outdated)" if host["outdated"] else ""
            version = f"{host['version'] or 'no version'}{old}"
            line = f"{host['host']}  {host['state']}  {version}  {host['labels']}"
            self.stdout.write(printable(line))


def _facts(host: Controller) -> dict[str, Any]:
    return {
        "host": f"{host.project.name}/{host.name}",
        "state": state_of(host),
        "version": host.client_version,
        "outdated": is_outdated(host.client_version),
        "hostname": host.hostname,
        "labels": host.labels,
    }
