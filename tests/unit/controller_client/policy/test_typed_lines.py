"""The host's policy judges each line that is typed, and quotes no hidden one."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import HostPolicy
from controller_client.protocol.messages import (
    Failure,
    ProjectRules,
    SendInput,
)
from tests.support.corpora.bypass_attempts import attempts
from tests.unit.controller_client.policy.listed_programs import policy_of


def _typed(
    policy: HostPolicy,
    data: bytes = b"",
    *,
    is_hidden: bool = False,
    rules: ProjectRules | None = None,
    **more: Any,
) -> SendInput:
    command = SendInput(seq=1, session_id="s", input_seq=1, data=data, **more)
    return policy.judge(command, rules or ProjectRules(), is_hidden=is_hidden)


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("typed"))
def test_every_typed_attempt_of_the_corpus_is_refused(
    allowed: list[str], attempt: str, part: str
) -> None:
    judged = _typed(HostPolicy([PolicyFile(allowlist=Allowlist.parse(allowed))]), attempt.encode())
    assert judged.refused is not None
    assert judged.refused.code == "COMMAND_NOT_ALLOWED"
    assert ascii(part)[1:-1] in judged.refused.message


def test_allowed_lines_pass_and_are_marked_as_checked(programs: Path) -> None:
    policy = policy_of(programs, "sleep", "cd", "true")
    for data in (b"sleep 1\n", b"cd /tmp\n", b"true && exit\n", b"\n"):
        judged = _typed(policy, data)
        assert (judged.refused, judged.is_line_checked, judged.data) == (None, True, data)
    assert (
        _typed(
            HostPolicy(), b"id", refused=Failure(code="X", message=""), is_line_checked=True
        ).refused
        is None
    )
    assert not _typed(HostPolicy(), b"id", is_line_checked=True).is_line_checked


def test_a_typed_name_has_to_be_what_it_says(programs: Path) -> None:
    policy = policy_of(programs, "sleep", "ls:shell", "missing", "kill")
    for data in (b"ls\n", b"missing\n", b"id\n"):
        assert _typed(policy, data).refused is not None
    denied = policy_of(programs, "sleep", "kill", denied=frozenset({"kill"}))
    assert _typed(denied, b"kill 1\n").refused is not None


def test_a_hidden_input_is_never_quoted(programs: Path) -> None:
    policy = policy_of(programs, "sleep")
    for judged in (
        _typed(policy, b"hunter2\n", is_hidden=True),
        _typed(policy, secret=b"hunter2\n"),
        _typed(policy, b"hunter2", is_hidden=True),
    ):
        assert judged.refused is not None
        assert "hunter2" not in msgspec.json.encode(judged.refused).decode()


def test_the_list_of_a_project_holds_for_typed_lines(programs: Path) -> None:
    policy = HostPolicy([PolicyFile(search_path=str(programs))])
    rules = ProjectRules(commands=["sleep"])
    assert _typed(policy, b"sleep 1\n", rules=rules).refused is None
    assert _typed(policy, b"id\n", rules=rules).refused is not None


@pytest.mark.parametrize("denied", ["kill", "/bin/kill", "/nowhere/kill"])
def test_a_builtin_that_does_what_is_denied_is_denied(programs: Path, denied: str) -> None:
    policy = policy_of(programs, "bash:shell", "kill", "echo", denied=frozenset({denied}))
    refused = _typed(policy, b"kill 1\n").refused
    assert refused is not None
    assert "denies" in refused.message
    assert _typed(policy, b"echo kill\n").refused is None


def test_a_program_that_is_denied_cannot_be_typed_under_another_name(programs: Path) -> None:
    (programs / "nap").hardlink_to(programs / "sleep")
    policy = policy_of(
        programs, "bash:shell", "nap", "cat", denied=frozenset({str(programs / "sleep")})
    )
    assert _typed(policy, b"nap 1\n").refused is not None
    assert _typed(policy, b"cat a\n").refused is None
