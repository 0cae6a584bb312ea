"""What callers and operators do to a session is in its record, with who did it."""

from uuid import UUID

import pytest

from projects import services
from projects.models import CommandSession, SessionEvent
from projects.storage.access import in_database
from tests.support.hosts.acting_host import ActingHost
from tests.support.rows import make_session

pytestmark = pytest.mark.django_db(transaction=True)


def _events() -> list[tuple[str, str, dict[str, object]]]:
    return [(e.kind, e.actor, e.detail) for e in SessionEvent.objects.order_by("seq")]


async def test_operators_and_callers_are_on_record_with_what_they_did(
    host: ActingHost, project_id: UUID
) -> None:
    session: CommandSession = await in_database(make_session, host.controller)
    key = session.pk
    await services.session_take_over(project_id, key, operator="ada")
    await services.session_hand_back(project_id, key, operator="ada", note="done")
    await services.session_resize(project_id, key, rows=50, cols=132)
    size = {"rows": 50, "cols": 132, "from_rows": 24, "from_cols": 120}
    assert await in_database(_events) == [
        ("take_over", "ada", {}),
        ("hand_back", "ada", {"note": "done"}),
        ("resize", "system", size),
    ]
