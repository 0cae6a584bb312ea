"""Three groups of rights that every server has: observer, operator and auditor."""

from typing import Any, Final

from django.contrib.auth.models import Group, Permission

_OBSERVER: Final = (
    "view_project",
    "view_controller",
    "view_commandsession",
    "view_transcript",
    "view_monitor",
    "view_agentrun",
    "view_approval",
    "view_run_transcript",
)
_RIGHTS: Final = {
    "observer": _OBSERVER,
    "operator": (
        *_OBSERVER,
        "terminate_session",
        "take_over_session",
        "control_run",
        "answer_approval",
    ),
    "auditor": (*_OBSERVER, "view_auditevent", "export_auditevent"),
}
_APPS: Final = ("projects", "agent")


def ensure_groups(**_signal: Any) -> None:
    """Makes the groups that are missing, after each migration.

    A group that exists stays as its administrator left it.
    """
    there = set(Group.objects.filter(name__in=_RIGHTS).values_list("name", flat=True))
    for name, codenames in _RIGHTS.items():
        if name not in there:
            rights = Permission.objects.filter(
                codename__in=codenames, content_type__app_label__in=_APPS
            )
            Group.objects.create(name=name).permissions.set(rights)
