"""Moves the questions of runs to the approvals of all callers, and policies to their projects."""

import json
import uuid

from django.db import migrations

from projects.storage.sealing import seal

_RIGHTS = {
    "view_agentapproval": ("view_approval",),
    "control_run": ("view_approval", "answer_approval"),
}


def move_approvals(apps, _schema_editor):
    """Each question keeps its call, its answer and its place in its run."""
    approval = apps.get_model("projects", "Approval")
    for old in apps.get_model("agent", "AgentApproval").objects.select_related("run").iterator():
        is_left = old.answer == "pending" and old.run.ended_at is not None
        approval.objects.create(
            project_id=old.run.project_id,
            request_id=uuid.uuid5(old.run_id, f"{old.step_number}.{old.call_index}"),
            asked_by=f"agent:{old.run_id}",
            owner=old.run.submitted_by,
            origin={"run": str(old.run_id), "step": old.step_number, "call": old.call_index},
            tool=old.tool,
            sealed_arguments=seal(json.dumps(old.arguments).encode()),
            digest="",
            risk=old.risk,
            risk_reason=old.risk_reason,
            host=old.host,
            session_id=old.session_id,
            session_command=old.session_command,
            live_programs=old.live_programs,
            answer="withdrawn" if is_left else old.answer,
            answered_by=old.answered_by,
            reason=old.reason,
            created_at=old.created_at,
            answered_at=old.answered_at,
        )


def move_policies(apps, _schema_editor):
    """The policy of a project for its runs stays one for its runs."""
    projects = apps.get_model("projects", "Project").objects
    for old in apps.get_model("agent", "ProjectApprovals").objects.iterator():
        projects.filter(id=old.project_id).update(run_approvals=old.approvals)


def move_rights(apps, _schema_editor):
    """Whoever could see and answer the questions of runs still can."""
    permissions = apps.get_model("auth", "Permission").objects
    kind, _ = apps.get_model("contenttypes", "ContentType").objects.get_or_create(
        app_label="projects", model="approval"
    )
    names = {"view_approval": "Can view approval", "answer_approval": "Can approve and deny calls"}
    for codename, followers in _RIGHTS.items():
        for held in permissions.filter(content_type__app_label="agent", codename=codename):
            for follower in followers:
                right, _ = permissions.get_or_create(
                    content_type=kind, codename=follower, defaults={"name": names[follower]}
                )
                right.group_set.add(*held.group_set.all())
                right.user_set.add(*held.user_set.all())


class Migration(migrations.Migration):

    dependencies = [
        ("agent", "0003_approval_targets"),
        ("projects", "0029_approvals"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.RunPython(move_approvals, migrations.RunPython.noop),
        migrations.RunPython(move_policies, migrations.RunPython.noop),
        migrations.RunPython(move_rights, migrations.RunPython.noop),
        migrations.AlterModelOptions(
            name="agentrun",
            options={
                "ordering": ("-created_at",),
                "permissions": (
                    ("control_run", "Can start and stop runs"),
                    ("view_run_transcript", "Can read what a run said and saw"),
                ),
            },
        ),
        migrations.DeleteModel(name="AgentApproval"),
        migrations.DeleteModel(name="ProjectApprovals"),
    ]
