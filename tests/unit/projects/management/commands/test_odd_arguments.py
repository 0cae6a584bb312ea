"""Arguments that nobody types on purpose: each is refused in one line, and nothing is done."""

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from projects.management.signed_heads import heads_of_log
from projects.models import AuditEvent, EnrolmentCode, Project

pytestmark = pytest.mark.django_db

_NO_TEXT = "x\udcff"


@pytest.mark.parametrize(
    "arguments",
    [
        ("agent_runs", _NO_TEXT),
        ("agent_runs", "--project", _NO_TEXT),
        ("approve", f"lab/{_NO_TEXT}"),
        ("acknowledge_marks", "--reason", _NO_TEXT),
        ("create_project", "other", "--member", _NO_TEXT),
        ("end_sessions", _NO_TEXT),
        ("export_audit", "--project", _NO_TEXT),
        ("hosts", "--label", _NO_TEXT),
        ("remove_second_factor", _NO_TEXT),
        ("revoke", _NO_TEXT),
        ("send_again", "lab", "--target", _NO_TEXT),
        ("set_secret", "lab", "vault", "--controller", _NO_TEXT),
        ("take_over", _NO_TEXT),
        ("verify_audit", "--project", _NO_TEXT),
    ],
)
def test_bytes_that_are_no_text_are_refused(arguments: tuple[str, ...]) -> None:
    Project.objects.create(name="lab")
    with pytest.raises(CommandError, match=r"x\\udcff' is not UTF-8 text") as refused:
        call_command(*arguments)
    assert refused.value.returncode == 4
    assert not AuditEvent.objects.exists()


def test_the_name_of_a_file_may_be_of_any_bytes(tmp_path: Path) -> None:
    (log := tmp_path / _NO_TEXT).write_text("no heads\n")
    call_command("verify_audit", "--log", str(log), stdout=(out := StringIO()))
    assert out.getvalue().startswith("(server): whole")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--hosts", "0"),
        ("--hosts", "-1"),
        ("--hosts", "9" * 30),
        ("--hosts", "2", "--hours", "nan"),
        ("--hosts", "2", "--hours", "inf"),
        ("--hosts", "2", "--hours", "0"),
        ("--hosts", "2", "--label", "two;words"),
    ],
)
def test_a_key_for_no_hosts_or_no_time_is_not_made(arguments: tuple[str, ...]) -> None:
    Project.objects.create(name="lab")
    with pytest.raises(CommandError):
        call_command("create_enrolment_key", "lab", *arguments)
    assert not EnrolmentCode.objects.exists()


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", "x", "9" * 5000])
def test_a_limit_that_is_no_count_is_refused(limit: str) -> None:
    with pytest.raises(CommandError, match="--limit"):
        call_command("agent_runs", "--limit", limit)


@pytest.mark.parametrize("limit", ["9" * 18, "9" * 30])
def test_a_limit_beyond_all_rows_lists_all_of_them(limit: str) -> None:
    call_command("agent_runs", "--limit", limit, stdout=(out := StringIO()))
    assert out.getvalue() == ""


@pytest.mark.parametrize("approval", ["9" * 18, "9" * 30, "-1"])
def test_an_approval_that_no_row_has_is_refused(approval: str) -> None:
    with pytest.raises(CommandError):
        call_command("answer_approval", "--approve", "--", approval)


def test_a_log_with_lines_that_only_look_like_heads_names_none(tmp_path: Path) -> None:
    line = "audit log of project {} signed at row {}: {}\n"
    digest, chain = "0" * 64, "0" * 8 + "-0000" * 3 + "-" + "0" * 12
    (log := tmp_path / "log").write_bytes(
        line.format("-" * 36, 1, digest).encode()
        + line.format(chain.replace("-", "0"), 1, digest).encode()
        + line.format(chain, "9" * 30, digest).encode()
        + line.format(chain, 1, "x" * 64).encode()
        + b"\xff\x00 audit log of project\n"
        + line.format(chain, 7, digest)[:-1].encode()
    )
    assert [(str(each), heads) for each, heads in heads_of_log(log).items()] == [
        (chain, {(7, digest)})
    ]
