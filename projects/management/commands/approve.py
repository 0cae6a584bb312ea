"""``manage.py approve PROJECT/NAME``: let in a host that enrolled itself.

How it enrolled is written to standard error before it is let in.
"""

from argparse import ArgumentParser
from datetime import UTC
from typing import Any

from projects.enrolment.codes import controller_approve
from projects.management.naming import actor, controller_at, printable
from projects.management.refusals import RefusingCommand
from projects.models import AuditEvent, Controller


class Command(RefusingCommand):
    help = (
        "Approve a controller that enrolled itself while HOLDLINE_ENROLMENT_APPROVAL was on. "
        "To reject it, use manage.py revoke."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("controller", help="PROJECT/NAME")

    def handle(self, *, controller: str, **_options: Any) -> None:
        host = controller_at(controller)
        self.stderr.write(_story(host), str)
        # The host tries again by itself, at least every half minute.
        is_first = controller_approve(controller=host, actor=actor())
        self.stdout.write("approved" if is_first else "it was approved already")


def _story(host: Controller) -> str:
    """The host, and what its enrolment left on record: when, with which code, and from where."""
    rows = AuditEvent.objects.filter(
        project_id=host.project_id, controller_id=host.id, action="controller.enrol"
    )
    parts = [f"{host.project.name}/{host.name}"]
    for row in rows.order_by("-seq")[:1]:
        at = row.created_at.astimezone(UTC)
        parts.append(f"enrolled {at:%Y-%m-%d %H:%M:%S} UTC by {row.actor}")
        if peer := row.detail.get("from"):
            parts.append(f"from {peer}")
    if host.hostname:
        parts.append(f"calls itself {host.hostname}")
    if host.labels:
        parts.append(f"labels: {host.labels}")
    return printable("; ".join(parts))
