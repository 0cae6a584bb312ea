"""What the board reads: no project hides the sessions of another."""

from datetime import timedelta

import pytest
from django.utils import timezone

from console.live import board_reads
from projects.models import CommandSession
from tests.unit.console.conftest import Tenant

pytestmark = pytest.mark.django_db


def test_a_project_with_many_sessions_hides_no_older_one_of_another(
    ours: Tenant, theirs: Tenant
) -> None:
    CommandSession.objects.bulk_create(
        CommandSession(
            project=theirs.project,
            controller=theirs.host,
            state="RUNNING",
            created_at=timezone.now() + timedelta(seconds=number),
        )
        for number in range(board_reads.MAX_ROWS)
    )
    found = board_reads.read_board({}, 1)
    assert len(found) == board_reads.MAX_ROWS
    assert ours.session.pk in found
