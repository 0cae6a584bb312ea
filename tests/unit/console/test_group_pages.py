"""What a member of each of the three groups gets of each page and each button of the console."""

from typing import Any, Final

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from console.groups import ensure_groups
from console.urls import urlpatterns
from projects import services
from projects.models import CommandSession
from tests.unit.console.test_urls import OPEN, addresses_of

pytestmark = pytest.mark.django_db(transaction=True)

GROUPS: Final = ("observer", "operator", "auditor")
_NOBODY: Final = frozenset[str]()
_OPERATOR: Final = frozenset({"operator"})
_AUDITOR: Final = frozenset({"auditor"})
# Every other page or button is for all three.
_ALLOWED: Final = {
    "secret": _OPERATOR,
    "stop_all": _OPERATOR,
    "snooze": _OPERATOR,
    "answer_approval": _OPERATOR,
    "run_new": _OPERATOR,
    "run_stop": _OPERATOR,
    "run_resume": _OPERATOR,
    "timeline": _AUDITOR,
    "export": _AUDITOR,
    "verify": _AUDITOR,
    "replay_erase": _NOBODY,
    "revoke": _NOBODY,
    "enrol": _NOBODY,
    "send_again": _NOBODY,
}


@pytest.fixture(params=GROUPS)
def group(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def member(group: str, session: CommandSession) -> Client:
    """A member of the group and of the project, with no other right."""
    ensure_groups()
    person = User.objects.create_user("ann", is_staff=True)
    person.groups.add(Group.objects.get(name=group))
    session.project.members.add(person)
    client = Client()
    client.force_login(person)
    return client


async def _end(ids: list[Any], *, actor: str) -> list[str]:
    """End all sessions at once: no host is connected that could."""
    return ["" for _ in ids]


def test_each_page_is_for_the_groups_that_may_see_it(
    member: Client, group: str, session: CommandSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The host of this test echoes nothing.
    monkeypatch.setattr("console.pages.host._LOOKS", 1)
    monkeypatch.setattr(services, "sessions_terminate", _end)
    names = [pattern.name for pattern in urlpatterns if pattern.name not in OPEN]
    for name, address in zip(names, addresses_of(session), strict=True):
        is_allowed = group in _ALLOWED.get(str(name), GROUPS)
        answers = [member.get(address), member.post(address)]
        refused = [answer.status_code == 403 for answer in answers]
        assert refused == [not is_allowed] * 2, name
