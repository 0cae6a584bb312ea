"""Commands say what they did once it is done, and end with their own exit code if they refuse."""

from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from console.models import SecondFactor
from projects.management.refusals import EXIT_REFUSED
from projects.models import Project

pytestmark = pytest.mark.django_db(transaction=True)


class _AfterCommit(StringIO):
    """Standard output that is written to outside of transactions only."""

    def write(self, text: str) -> int:
        assert not connection.in_atomic_block
        return super().write(text)


@pytest.mark.parametrize(
    "arguments",
    [
        ["create_project", "new"],
        ["create_controller", "lab", "web"],
        ["remove_second_factor", "ada"],
    ],
)
def test_nothing_is_printed_before_it_is_committed(arguments: list[str]) -> None:
    Project.objects.create(name="lab")
    ada = get_user_model().objects.create_user("ada")
    SecondFactor.objects.create(user=ada)
    out = _AfterCommit()
    call_command(*arguments, stdout=out)
    assert out.getvalue().strip()


def test_a_log_that_cannot_be_read_is_a_refusal(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="cannot be read") as refused:
        call_command("verify_audit", "--log", str(tmp_path / "gone"))
    assert refused.value.returncode == EXIT_REFUSED


@pytest.mark.parametrize("answer", ["--approve", "--deny"])
def test_an_answer_needs_the_approval_that_it_is_about(answer: str) -> None:
    with pytest.raises(CommandError, match="name the approval") as refused:
        call_command("answer_approval", answer)
    assert refused.value.returncode == EXIT_REFUSED
