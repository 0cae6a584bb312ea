"""Which sessions are shells, and so have what is typed judged."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.host_policy import HostPolicy
from controller_client.input_guard import InputGuard
from controller_client.policy_file import PolicyFile
from controller_client.protocol.messages import Failure, SendInput, StartInteractiveCmd, TerminalReport
from controller_client.session_directory import create, directory_of

POLICY = HostPolicy([PolicyFile(allowlist=Allowlist.parse(["sleep", "bash:shell", "cat"]))])


def _guard(tmp_path: Path, start: StartInteractiveCmd, policy: HostPolicy = POLICY) -> InputGuard:
    create(tmp_path, start)
    return InputGuard(directory_of(tmp_path, start.session_id), policy)


def _start(command: str, **more: Any) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, **more)


def _is_refused(guard: InputGuard, data: bytes = b"id\n") -> bool:
    return guard.judged(SendInput(seq=1, session_id="s", input_seq=1, data=data)).refused is not None


@pytest.mark.parametrize("command", ["bash", "bash -i", "sleep 0; bash"])
def test_a_shell_s_input_is_judged(tmp_path: Path, command: str) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start(command)))
    assert _is_refused(guard)
    assert not _is_refused(guard, b"sleep 1\n")


def test_a_shell_that_was_started_before_the_policy_is_judged_too(tmp_path: Path) -> None:
    assert _is_refused(_guard(tmp_path, HostPolicy().admit(_start("/bin/bash -i"))))
    assert _is_refused(_guard(tmp_path, _start("zsh")))


def test_a_program_that_is_no_shell_is_answered_freely(tmp_path: Path) -> None:
    for command in ("cat", "sleep 1 && cat"):
        assert not _is_refused(_guard(tmp_path, POLICY.admit(_start(command))))


def test_a_terminal_seen_at_a_shell_s_prompt_is_a_shell_from_then_on(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    guard.on_report(TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind="line"))
    assert not _is_refused(guard)
    guard.on_report(TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind="shell"))
    guard.on_report(TerminalReport(state="running", offset=0, input_seq=0))
    guard.on_report(None)
    assert _is_refused(guard)


def test_a_hidden_input_is_refused_without_its_words(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    guard.on_report(TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind="secret"))
    refused = guard.judged(SendInput(seq=1, session_id="s", input_seq=1, data=b"hunter2\n")).refused
    assert refused is not None
    assert "hunter2" not in refused.message


def test_a_server_cannot_say_what_the_host_decided(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    forged = SendInput(seq=1, session_id="s", input_seq=1, data=b"x", refused=Failure(code="X", message=""), is_line_checked=True)
    judged = guard.judged(forged)
    assert (judged.refused, judged.is_line_checked) == (None, False)
