"""Commands that let somebody in, or lock somebody out, say whom."""

from io import StringIO

import pytest
from django.core.management import call_command

from projects.accounts.credentials import api_token_create, controller_credential_create
from projects.conf import conf
from projects.enrolment.codes import enrolment_key_create, host_enrol
from projects.models import Controller, Project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def lab() -> Project:
    return Project.objects.create(name="lab")


class _BeforeItIsDone(StringIO):
    """A stream that is written to while the host still waits."""

    def write(self, text: str) -> int:
        assert Controller.objects.filter(awaits_approval_since__isnull=False).exists()
        return super().write(text)


def _said(*arguments: str, **streams: StringIO) -> str:
    call_command(*arguments, stdout=(out := StringIO()), **streams)
    return out.getvalue().strip()


def test_how_a_host_enrolled_is_told_before_it_is_let_in(
    lab: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conf, "enrolment_approval", True)
    row, key = enrolment_key_create(project=lab, hosts=1, hours=1)
    host_enrol(code=key, peer="10.0.0.5", name="web1", labels="rack-7")
    Controller.objects.update(hostname="web\x1b[2J")
    story = _BeforeItIsDone()
    assert _said("approve", "lab/web1", stderr=story) == "approved"
    name, enrolled, *rest = story.getvalue().strip().split("; ")
    assert name == "lab/web1"
    assert enrolled.startswith("enrolled 20")
    assert enrolled.endswith(f" UTC by enrolment:{row.key_id}")
    assert rest == ["from 10.0.0.5", "calls itself web\\x1b[2J", "labels: rack-7"]
    assert _said("approve", "lab/web1", stderr=StringIO()) == "it was approved already"


@pytest.mark.parametrize("what", ["token", "credential", "controller"])
def test_what_is_revoked_is_named(lab: Project, what: str) -> None:
    token, _ = api_token_create(project=lab, name="ci\x1b[2J")
    host = Controller.objects.create(project=lab, name="web1")
    credential, _ = controller_credential_create(controller=host, actor="test")
    named, told = {
        "token": (token.key_id, "the API token ci\\x1b[2J of lab"),
        "credential": (credential.key_id, "a credential of lab/web1"),
        "controller": ("lab/web1", "the controller lab/web1"),
    }[what]
    assert _said("revoke", named) == f"revoked: {told}"
    if what != "controller":
        assert _said("revoke", named).startswith(f"revoked: {told} (it was before, at 20")
