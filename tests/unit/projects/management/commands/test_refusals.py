"""Commands say what they did once it is done, and end with their own exit code if they refuse."""

import re
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection

from console.models import SecondFactor
from projects.management.refusals import EXIT_REFUSED
from projects.models import AuditEvent, Controller, Project

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


_REFUSED = [
    (["create_project", ""], ""),
    (["create_project", "lab"], ""),
    (["create_project", "two words"], ""),
    (["create_api_token", "lab", "--name", ""], ""),
    (["create_api_token", "lab", "--name", "x" * 65], ""),
    (["create_api_token", "lab", "--days", "0"], ""),
    (["create_api_token", "lab", "--starts-per-minute", "-1"], ""),
    (["create_api_token", "lab", "--input-bytes-per-minute", "9" * 20], ""),
    (["create_controller", "lab", "web1"], ""),
    (["create_controller", "lab", "a/b"], ""),
    (["create_enrolment_code", "lab", "web1"], ""),
    (["create_enrolment_code", "lab", "web2", "--minutes", "0"], ""),
    (["create_enrolment_key", "lab", "--hosts", "0"], ""),
    (["set_secret", "lab", "vault", "--any-controller"], ""),
    (["set_secret", "lab", "two words", "--any-controller"], "a value\n"),
    (["set_attention_target", "lab", "ops"], "https://example.com/\n"),
    (["set_attention_target", "lab", "ops", "--way", "email"], "nobody\n"),
    (["set_attention_target", "lab", "ops", "--way", "webhook"], "one\ntwo\n"),
    (["send_test_event", "lab"], ""),
    (["send_again", "lab", "--target", "ops"], ""),
    (["acknowledge_marks", "--reason", " "], ""),
    (["answer_approval", "--deny"], ""),
    (["answer_approval", "7"], ""),
    (["remove_second_factor", "nobody"], ""),
    (["verify_audit", "--log", "/nonexistent"], ""),
    (["restore", "/nonexistent"], ""),
    (["backup", "/proc/nowhere"], ""),
    (["confirm_restore"], ""),
]


@pytest.mark.parametrize(("arguments", "typed"), _REFUSED)
def test_a_refusal_has_a_code_a_remedy_and_its_exit_code(
    arguments: list[str], typed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Controller.objects.create(project=Project.objects.create(name="lab"), name="web1")
    monkeypatch.setattr("sys.stdin", StringIO(typed))
    with pytest.raises(CommandError) as refused:
        call_command(*arguments, stdout=(out := StringIO()))
    assert refused.value.returncode == EXIT_REFUSED
    assert re.search(r"[^.] \([A-Z]+(_[A-Z]+)+\)[.:] \S", str(refused.value))
    assert out.getvalue() == ""
    assert not AuditEvent.objects.exists()
