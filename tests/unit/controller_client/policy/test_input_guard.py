"""Inputs of sessions that are shells are judged; others pass freely."""

from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import HostPolicy
from controller_client.policy.input_guard import InputGuard
from controller_client.policy.kill_switch import KillSwitch
from controller_client.protocol.messages import (
    Failure,
    SendInput,
    StartInteractiveCmd,
    TerminalReport,
)
from controller_client.protocol.values import PROVES_READERS, PromptKind
from controller_client.session_files.directory import SessionDirectory, create, directory_of
from tests.support.descriptors import spare_descriptors

POLICY = HostPolicy([PolicyFile(allowlist=Allowlist.parse(["sleep", "bash:shell", "cat"]))])


def _guard(tmp_path: Path, start: StartInteractiveCmd, policy: HostPolicy = POLICY) -> InputGuard:
    create(tmp_path, start)
    return InputGuard(directory_of(tmp_path, start.session_id), policy)


def _start(command: str, **more: Any) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=1, session_id=str(uuid4()), command=command, **more)


def _is_refused(guard: InputGuard, data: bytes = b"id\n") -> bool:
    return (
        guard.judged(SendInput(seq=1, session_id="s", input_seq=1, data=data), ()).refused
        is not None
    )


@pytest.mark.parametrize("command", ["bash", "bash -i", "sleep 0; bash"])
def test_input_for_a_shell_is_judged(tmp_path: Path, command: str) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start(command)))
    assert _is_refused(guard)
    assert not _is_refused(guard, b"sleep 1\n")


@pytest.mark.parametrize(("key", "is_allowed"), [("Ctrl+C", True), ("^D", True), ("^R", False)])
def test_a_key_is_judged_however_it_is_written(
    tmp_path: Path, key: str, *, is_allowed: bool
) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    judged = guard.judged(SendInput(seq=1, session_id="s", input_seq=1, keys=[key]), ())
    assert (judged.refused is None) is is_allowed


def test_a_shell_that_was_started_before_the_policy_is_judged_too(tmp_path: Path) -> None:
    assert _is_refused(_guard(tmp_path, HostPolicy().admit(_start("/bin/bash -i"))))
    assert _is_refused(_guard(tmp_path, _start("zsh")))


@pytest.mark.parametrize("problem", [MemoryError(), OSError("no descriptor")])
def test_an_input_is_refused_while_nobody_can_look_at_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, problem: Exception
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise problem

    started = _guard(tmp_path, POLICY.admit(_start("bash")))
    assert not _is_refused(started, b"sleep 1\n")
    recalled = _guard(tmp_path, POLICY.admit(_start("bash")))
    with monkeypatch.context() as patched:
        patched.setattr(HostPolicy, "judge", fail)
        patched.setattr(SessionDirectory, "read_start", fail)
        assert _is_refused(started, b"sleep 1\n")
        assert _is_refused(recalled, b"sleep 1\n")
    assert not _is_refused(started, b"sleep 1\n")
    assert not _is_refused(recalled, b"sleep 1\n")


def test_a_program_that_is_no_shell_is_answered_freely(tmp_path: Path) -> None:
    for command in ("cat", "sleep 1 && cat"):
        assert not _is_refused(_guard(tmp_path, POLICY.admit(_start(command))))


def test_a_session_seen_at_a_shell_prompt_counts_as_a_shell(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    guard.on_report(TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind="line"))
    assert not _is_refused(guard)
    guard.on_report(TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind="shell"))
    guard.on_report(TerminalReport(state="running", offset=0, input_seq=0))
    guard.on_report(None)
    assert _is_refused(guard)


def _at(kind: PromptKind | None) -> TerminalReport:
    if kind is None:
        return TerminalReport(state="running", offset=0, input_seq=0)
    return TerminalReport(state="awaiting_input", offset=0, input_seq=0, kind=kind)


def test_a_shell_that_was_seen_is_one_under_a_later_daemon(tmp_path: Path) -> None:
    start = POLICY.admit(_start("cat"))
    earlier = _guard(tmp_path, start)
    earlier.on_report(_at("shell"))
    earlier.on_report(_at(None))
    for later in (InputGuard(directory_of(tmp_path, start.session_id), POLICY) for _ in "ab"):
        later.on_report(_at(None))
        assert _is_refused(later)
        assert not _is_refused(later, b"sleep 1\n")


def test_a_shell_that_cannot_be_noted_is_one_for_this_daemon(tmp_path: Path) -> None:
    start = POLICY.admit(_start("cat"))
    guard = _guard(tmp_path, start)
    directory_of(tmp_path, start.session_id).remove()
    guard.on_report(_at("shell"))
    assert _is_refused(guard)


def test_a_program_that_is_only_asked_a_line_leaves_no_note_of_a_shell(tmp_path: Path) -> None:
    start = POLICY.admit(_start("cat"))
    earlier = _guard(tmp_path, start)
    for kind in ("line", "secret", "key", "screen", None):
        earlier.on_report(_at(kind))
    assert not directory_of(tmp_path, start.session_id).was_shell()
    assert not _is_refused(InputGuard(directory_of(tmp_path, start.session_id), POLICY))


def _said_of(guard: InputGuard, data: bytes) -> str:
    command = SendInput(seq=1, session_id="s", input_seq=1, data=data)
    refused = guard.judged(command, ()).refused
    assert refused is not None
    return refused.message


def test_a_refusal_does_not_quote_a_hidden_input(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    guard.on_report(_at("secret"))
    for _ in range(2):
        assert "hunter2" not in _said_of(guard, b"hunter2\n")


def test_a_refusal_quotes_nothing_before_the_terminal_was_reported(tmp_path: Path) -> None:
    start = POLICY.admit(_start("bash"))
    assert "hunter2" not in _said_of(_guard(tmp_path, start), b"hunter2\n")
    restarted = InputGuard(directory_of(tmp_path, start.session_id), POLICY)
    assert "hunter2" not in _said_of(restarted, b"hunter2\n")


@pytest.mark.parametrize("kind", ["shell", "line", None])
def test_the_first_line_after_a_report_is_quoted(tmp_path: Path, kind: PromptKind | None) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    guard.on_report(_at(kind))
    assert "'id'" in _said_of(guard, b"id\n")


def test_an_answer_that_could_not_be_judged_is_not_quoted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise MemoryError

    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    guard.on_report(_at("secret"))
    guard.on_report(_at("shell"))
    with monkeypatch.context() as patched:
        patched.setattr(HostPolicy, "judge", fail)
        assert "hunter2" not in _said_of(guard, b"hunter2\n")
    assert "hunter2" not in _said_of(guard, b"hunter2\n")
    assert "'id'" in _said_of(guard, b"id\n")


@pytest.mark.parametrize("now", ["shell", "line", None])
def test_an_answer_that_comes_after_its_hidden_question_is_not_quoted(
    tmp_path: Path, now: PromptKind | None
) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("bash")))
    guard.on_report(_at("secret"))
    guard.on_report(_at(now))
    guard.on_report(_at(now))
    assert "hunter2" not in _said_of(guard, b"hunter2\n")
    assert "'id'" in _said_of(guard, b"id\n"), "the caller of a plain line is told what is wrong"


def test_a_verdict_that_a_server_sends_is_ignored(tmp_path: Path) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    forged = SendInput(
        seq=1,
        session_id="s",
        input_seq=1,
        data=b"x",
        refused=Failure(code="X", message=""),
        is_line_checked=True,
    )
    judged = guard.judged(forged, ())
    assert (judged.refused, judged.is_line_checked) == (None, False)


def _secret_of(guard: InputGuard, *programs: str) -> SendInput:
    secret = SendInput(
        seq=1, session_id="s", input_seq=1, secret=b"hunter2\n", secret_programs=list(programs)
    )
    return guard.judged(secret, {PROVES_READERS})


def test_a_list_of_commands_does_not_keep_a_secret_from_its_program(tmp_path: Path) -> None:
    admitted = POLICY.admit(_start("sleep 1"))
    assert "TERMINFO" in admitted.env
    judged = _secret_of(_guard(tmp_path, admitted), "sleep")
    assert (judged.refused, [Path(file).name for file in judged.secret_files]) == (None, ["sleep"])


@pytest.mark.parametrize(
    "env", [{"TERMINFO": "/tmp/x"}, {"TERMINFO_DIRS": "/etc/terminfo"}, {"LD_PRELOAD": "/tmp/x"}]
)
def test_a_variable_of_the_caller_keeps_a_secret_from_its_program(
    tmp_path: Path, env: dict[str, str]
) -> None:
    guard = _guard(tmp_path, HostPolicy().admit(_start("sleep 1", env=env)))
    refused = _secret_of(guard, "sleep").refused
    assert refused is not None
    assert refused.code == "ENV_NOT_ALLOWED"


@pytest.mark.parametrize("name", ["no such program", "/no/such/program", "sl\0eep", "x" * 5000])
def test_a_program_that_is_not_here_keeps_no_secret_from_another(tmp_path: Path, name: str) -> None:
    guard = _guard(tmp_path, HostPolicy().admit(_start("sleep 1")))
    judged = _secret_of(guard, name, "sleep")
    assert (judged.refused, [Path(file).name for file in judged.secret_files]) == (None, ["sleep"])
    refused = _secret_of(guard, name).refused
    assert refused is not None
    assert refused.code == "SECRET_NOT_FOR_READER"


def _judged(guard: InputGuard, *holder_can: str, **more: Any) -> SendInput:
    return guard.judged(SendInput(seq=1, session_id="s", input_seq=1, **more), holder_can)


def _code(judged: SendInput) -> str | None:
    return judged.refused.code if judged.refused is not None else None


def test_on_a_stopped_host_nothing_is_typed_not_even_a_key(tmp_path: Path) -> None:
    stop = tmp_path / "stop"
    guard = _guard(tmp_path, _start("cat"), HostPolicy([], KillSwitch([stop])))
    assert _code(_judged(guard, data=b"x")) is None
    stop.touch()
    for more in ({"data": b"x"}, {"keys": ["ctrl-c"]}, {"secret": b"x"}, {"eof": True}):
        assert _code(_judged(guard, PROVES_READERS, **more)) == "HOST_STOPPED"


@pytest.mark.parametrize(
    ("programs", "may_echo", "is_proof_needed"),
    [([], False, True), (["cat"], False, True), (["cat"], True, True), ([], True, False)],
)
def test_a_holder_that_proves_no_reader_gets_no_secret_that_needs_one(
    tmp_path: Path, programs: list[str], *, may_echo: bool, is_proof_needed: bool
) -> None:
    guard = _guard(tmp_path, HostPolicy().admit(_start("cat")), HostPolicy())
    secret = {"secret": b"hunter2", "secret_programs": programs, "may_echo": may_echo}
    assert _code(_judged(guard, **secret)) == ("HOST_TOO_OLD" if is_proof_needed else None)
    assert _code(_judged(guard, PROVES_READERS, **secret)) is None
    assert _code(_judged(guard, data=b"no secret")) is None


def test_a_secret_is_refused_while_the_rules_of_its_session_cannot_be_read(
    tmp_path: Path,
) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    for holder_can in ((), (PROVES_READERS,)):
        with spare_descriptors(0):
            judged = _judged(guard, *holder_can, secret=b"hunter2", secret_programs=["cat"])
        assert _code(judged) == "RULES_UNREADABLE"


@pytest.mark.parametrize(
    ("more", "is_shell"),
    [
        ({"argv": ["bash", "-i"]}, True),
        ({"argv": ["cat", "bash"]}, False),
        ({"command": "/usr/bin/zsh -i"}, True),
        ({"command": "cat"}, False),
        ({"command": ""}, False),
        ({"command": None}, False),
    ],
)
def test_a_session_of_an_older_daemon_is_a_shell_by_its_first_word(
    tmp_path: Path, more: dict[str, Any], *, is_shell: bool
) -> None:
    start = StartInteractiveCmd(seq=1, session_id=str(uuid4()), **more)
    assert _is_refused(_guard(tmp_path, start)) == is_shell


@pytest.mark.parametrize(
    "forged", [{"refused": Failure(code="X", message="")}, {"is_line_checked": True}]
)
def test_no_part_of_a_servers_verdict_counts(tmp_path: Path, forged: dict[str, Any]) -> None:
    guard = _guard(tmp_path, POLICY.admit(_start("cat")))
    judged = _judged(guard, data=b"x", **forged)
    assert (judged.refused, judged.is_line_checked) == (None, False)
