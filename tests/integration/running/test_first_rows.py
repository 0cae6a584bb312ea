"""What a transactional test finds is what Django itself makes of an empty database."""

import pytest
from django.contrib.auth.models import Group, Permission
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.core.management.sql import emit_post_migrate_signal

from projects.models import Project


def _flush() -> None:
    call_command("flush", verbosity=0, interactive=False, reset_sequences=False)


def _rows() -> dict[str, list[object]]:
    groups = Group.objects.order_by("name", "permissions__codename")
    return {
        "types": list(ContentType.objects.order_by("id").values()),
        "permissions": list(Permission.objects.order_by("id").values()),
        "groups": list(groups.values("id", "name", "permissions")),
    }


@pytest.mark.django_db(transaction=True)
def test_a_flush_leaves_the_rows_of_a_fresh_database_whatever_a_test_did() -> None:
    _flush()
    first = _rows()
    assert all(first.values())
    Project.objects.create(name="left behind")
    Group.objects.all().delete()
    Permission.objects.filter(codename="view_project").delete()
    ContentType.objects.filter(app_label="projects").delete()
    _flush()
    assert _rows() == first
    assert not Project.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_nothing_is_missing_of_what_a_migration_would_make() -> None:
    _flush()
    first = _rows()
    emit_post_migrate_signal(verbosity=0, interactive=False, db="default")
    assert _rows() == first


@pytest.mark.django_db(transaction=True)
def test_a_row_that_is_made_later_has_a_number_of_its_own() -> None:
    _flush()
    taken = set(Group.objects.values_list("id", flat=True))
    assert Group.objects.create(name="one more").id not in taken
