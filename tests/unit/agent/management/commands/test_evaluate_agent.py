"""An evaluation without places or without tasks is refused: it could not fail."""

from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from projects.models import Project

pytestmark = pytest.mark.django_db
_COMMAND = ("evaluate_agent", "--project", "lab")


@pytest.fixture(autouse=True)
def _lab() -> None:
    Project.objects.create(name="lab")


@pytest.mark.parametrize("number", ["0", "-1", "many"])
@pytest.mark.parametrize("command", [(*_COMMAND, "--at-once"), ("agent_runs", "--limit")])
def test_a_number_below_one_is_refused(command: tuple[str, ...], number: str) -> None:
    with pytest.raises(CommandError, match=f"{command[-1]}: must be a number from 1 on"):
        call_command(*command, number)


@pytest.mark.parametrize("place", ["", "nowhere"])
def test_a_directory_without_tasks_is_refused(tmp_path: Path, place: str) -> None:
    expected = rf"no task in {tmp_path}.*\(TASK_NOT_FOUND\)\. Name a directory"
    with pytest.raises(CommandError, match=expected) as refused:
        call_command(*_COMMAND, "--directory", str(tmp_path / place))
    assert refused.value.returncode == 4
