"""The host's policy holds for starts and inputs, whatever a server sends."""

from pathlib import Path
from typing import Any

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.policy import terminfo
from controller_client.policy.file import PolicyFile
from controller_client.policy.host_policy import RUNNER, HostPolicy
from controller_client.policy.kill_switch import KillSwitch
from controller_client.protocol.limits import MAX_RING_BYTES
from controller_client.protocol.messages import (
    Admission,
    Failure,
    ProjectRules,
    ResourceLimits,
    RunCommand,
    SendInput,
    StartInteractiveCmd,
)
from controller_client.system.start_failure import StartFailed
from tests.support.corpora.bypass_attempts import attempts
from tests.unit.controller_client.policy.listed_programs import policy_of


def _start(command: str | None = None, **more: Any) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=1, session_id="s", command=command, **more)


def _refusal(policy: HostPolicy, start: StartInteractiveCmd | RunCommand) -> Failure:
    with pytest.raises(StartFailed) as refused:
        policy.admit(start)
    return refused.value.failure


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("lines"))
def test_every_attempt_of_the_corpus_is_refused(
    allowed: list[str], attempt: str, part: str
) -> None:
    by_file = HostPolicy([PolicyFile(allowlist=Allowlist.parse(allowed))])
    by_project = _start(attempt, rules=ProjectRules(commands=allowed))
    for failure in (_refusal(by_file, _start(attempt)), _refusal(HostPolicy(), by_project)):
        assert failure.code == "COMMAND_NOT_ALLOWED"
        assert ascii(part)[1:-1] in failure.message


def test_without_a_list_anything_starts_as_it_is() -> None:
    admitted = HostPolicy().admit(_start("echo $(id) > /tmp/x", env={"A": "b"}))
    assert (admitted.command, admitted.argv, admitted.admission) == (
        "echo $(id) > /tmp/x",
        None,
        Admission(),
    )


def test_the_first_input_of_a_shell_is_whole_lines_if_more_may_follow() -> None:
    policy = HostPolicy([PolicyFile(allowlist=Allowlist.parse(["bash:shell", "echo"]))])
    for first in (b"id\n", b"echo a"):
        assert _refusal(policy, _start("bash", stdin_data=first)).code == "COMMAND_NOT_ALLOWED"
    assert policy.admit(_start("bash", stdin_data=b"echo a\n")).stdin_data == b"echo a\n"
    policy.admit(_start("bash", stdin_data=b"echo a", stdin="closed"))
    policy.admit(RunCommand(seq=1, session_id="s", command="bash", input=b"echo a"))


def test_one_command_runs_by_itself_from_its_real_file(programs: Path) -> None:
    admitted = policy_of(programs, "sleep").admit(_start("sleep '1 0'"))
    assert (admitted.command, admitted.argv) == (None, ["sleep", "1 0"])
    assert admitted.admission == Admission(program=str(programs / "sleep"))


def test_a_list_of_commands_runs_from_its_words_and_real_files(programs: Path) -> None:
    admitted = policy_of(programs, "sleep", "cat").admit(_start("sleep 1 && cat 'a b' | cat"))
    script = f"{programs}/sleep 1 && {programs}/cat 'a b' | {programs}/cat"
    assert admitted.argv == [RUNNER, "--noprofile", "--norc", "-c", script]
    assert admitted.admission == Admission(program=RUNNER)


def test_an_argument_list_is_checked_against_the_list_too(programs: Path) -> None:
    policy = policy_of(programs, "sleep")
    assert policy.admit(_start(argv=["sleep", "$(id)"])).argv == ["sleep", "$(id)"]
    for argv in (["id"], ["./sleep"], ["/tmp/sleep"], [str(programs / "sleep")], ["sleep\n"], [""]):
        assert _refusal(policy, _start(argv=argv)).code == "COMMAND_NOT_ALLOWED"
    assert (
        _refusal(policy, RunCommand(seq=1, session_id="s", argv=["id"])).code
        == "COMMAND_NOT_ALLOWED"
    )


@pytest.mark.parametrize("listed", [(), ("sleep",)], ids=["open", "listed"])
def test_a_start_has_either_a_line_or_its_words(programs: Path, listed: tuple[str, ...]) -> None:
    policy = policy_of(programs, *listed) if listed else HostPolicy()
    # Of two, one would be run and the other one shown.
    for start in (
        _start("sleep 1", argv=["id"]),
        _start("sleep 1", argv=[]),
        _start("", argv=["sleep", "1"]),
        _start(),
        RunCommand(seq=1, session_id="s"),
        RunCommand(seq=1, session_id="s", command="sleep 1", argv=["sleep", "1"]),
    ):
        assert _refusal(policy, start).code == "START_FAILED"
    for start in (_start("sleep 1"), _start(argv=["sleep", "1"])):
        assert policy.admit(start).rules == start.rules


@pytest.mark.parametrize(
    ("name", "most"), [("rows", 65535), ("cols", 65535), ("ring_bytes", MAX_RING_BYTES)]
)
def test_the_sizes_of_a_start_have_their_bounds(name: str, most: int) -> None:
    for right in (1, most):
        assert getattr(HostPolicy().admit(_start("cat", **{name: right})), name) == right
    for wrong in (0, -1, most + 1, 1 << 40):
        assert _refusal(HostPolicy(), _start("cat", **{name: wrong})).code == "START_FAILED"


@pytest.mark.parametrize(
    "numbers", [{"rows": 0}, {"cols": 65536}, {"ring_bytes": 0}, {"ring_bytes": MAX_RING_BYTES + 1}]
)
def test_a_start_of_impossible_size_is_refused_before_anything_runs(
    numbers: dict[str, int],
) -> None:
    assert _refusal(HostPolicy(), _start("cat", **numbers)).code == "START_FAILED"


def test_a_verdict_that_a_server_sends_is_ignored(programs: Path) -> None:
    forged = Admission(program=str(programs / "id"), takes_lines=False)
    admitted = policy_of(programs, "sleep").admit(_start("sleep 1", admission=forged))
    assert admitted.admission == Admission(program=str(programs / "sleep"))
    assert HostPolicy().admit(_start("sleep 1", admission=forged)).admission == Admission()


def test_a_link_to_another_program_is_refused_and_named(programs: Path) -> None:
    failure = _refusal(policy_of(programs, "echo"), _start("echo a"))
    assert failure.code == "COMMAND_NOT_ALLOWED"
    assert "'echo'" in failure.message
    assert str(programs / "id") in failure.message
    by_project = _start("echo a", rules=ProjectRules(commands=["echo"]))
    assert (
        "echo" in _refusal(HostPolicy([PolicyFile(search_path=str(programs))]), by_project).message
    )


def test_a_link_whose_target_is_listed_runs_the_target_under_its_name(programs: Path) -> None:
    busybox = str(programs / "busybox")
    policy = policy_of(programs, "ls:shell", busybox, "cat")
    admitted = policy.admit(_start("ls -l"))
    assert (admitted.argv, admitted.admission) == (
        ["ls", "-l"],
        Admission(program=busybox, takes_lines=True),
    )
    script = (policy.admit(_start("ls -l | cat")).argv or [])[-1]
    assert script == f"( exec -a ls {busybox} -l ) | {programs}/cat"


def test_a_name_that_hides_a_program_that_runs_others_needs_the_mark(programs: Path) -> None:
    target = str(programs / "vim.basic")
    assert (
        "editor:shell"
        in _refusal(policy_of(programs, "editor", target), _start("editor x")).message
    )
    assert policy_of(programs, "editor:shell", target).admit(_start("editor x")).admission


def test_a_script_needs_the_mark_or_its_full_path(programs: Path) -> None:
    script = programs / "savings"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    assert (
        "savings:shell, or its full path"
        in _refusal(policy_of(programs, "savings"), _start("savings -x")).message
    )
    for allowed in (["savings:shell"], ["savings", str(script)]):
        assert policy_of(programs, *allowed).admit(_start("savings -x")).admission.program == str(
            script
        )
    assert policy_of(programs, str(script)).admit(_start(f"{script} -x")).admission.program == str(
        script
    )
    by_project = _start("savings -x", rules=ProjectRules(commands=["savings"]))
    assert _refusal(policy_of(programs, "savings:shell"), by_project).code == "COMMAND_NOT_ALLOWED"


@pytest.mark.parametrize(
    "contents",
    [
        b"",
        b"echo without an interpreter\n",
        b"PK\x03\x04",
        b"#! /usr/bin/env -S python3 -I\n",
        b"MZ",
    ],
)
def test_a_file_the_kernel_does_not_run_itself_counts_as_a_script(
    programs: Path, contents: bytes
) -> None:
    (programs / "sleep").write_bytes(contents)
    assert "is a script" in _refusal(policy_of(programs, "sleep"), _start("sleep 1")).message
    typed = SendInput(seq=1, session_id="s", input_seq=1, data=b"sleep 1\n")
    refused = (
        policy_of(programs, "bash:shell", "sleep")
        .judge(typed, ProjectRules(), is_hidden=False)
        .refused
    )
    assert refused is not None
    assert refused.code == "COMMAND_NOT_ALLOWED"


def test_programs_get_the_systems_description_of_their_terminal(programs: Path) -> None:
    admitted = policy_of(programs, "sleep").admit(_start("sleep 1", env={"TERM": "vt100"}))
    directory = admitted.env["TERMINFO"]
    assert directory in terminfo.DIRECTORIES
    assert Path(directory, "v", "vt100").is_file()
    assert (
        policy_of(programs, "sleep").admit(_start("sleep 1")).env["TERMINFO"]
        in terminfo.DIRECTORIES
    )
    assert "TERMINFO" not in HostPolicy().admit(_start("sleep 1")).env


@pytest.mark.parametrize("terminal", ["made-up", "..", ".hidden", "x" * 200, "vt100:x", "+x"])
def test_a_terminal_that_the_system_does_not_describe_is_refused(
    programs: Path, terminal: str
) -> None:
    assert (
        _refusal(policy_of(programs, "sleep"), _start("sleep 1", env={"TERM": terminal})).code
        == "ENV_NOT_ALLOWED"
    )


@pytest.mark.parametrize("name", ["TERMINFO", "TERMINFO_DIRS", "TERMCAP", "HOME"])
def test_a_caller_cannot_choose_the_descriptions_of_terminals(programs: Path, name: str) -> None:
    assert (
        _refusal(
            policy_of(programs, "sleep"), _start("sleep 1", env={name: "/usr/share/terminfo"})
        ).code
        == "ENV_NOT_ALLOWED"
    )


def test_all_lists_have_to_agree_and_denied_wins(programs: Path) -> None:
    files = [
        PolicyFile(allowlist=Allowlist.parse(names), search_path=str(programs))
        for names in (["sleep", "cat"], ["sleep", "id"])
    ]
    policy = HostPolicy(files)
    assert policy.admit(_start("sleep 1")).argv
    for name in ("cat", "id"):
        assert _refusal(policy, _start(name)).code == "COMMAND_NOT_ALLOWED"
    assert (
        _refusal(policy, _start("sleep 1", rules=ProjectRules(commands=["cat"]))).code
        == "COMMAND_NOT_ALLOWED"
    )
    for denied in ("sleep", str(programs / "sleep")):
        failure = _refusal(
            policy_of(programs, "sleep", denied=frozenset({denied})), _start("sleep 1")
        )
        assert "denies" in failure.message
    assert (
        "denies"
        in _refusal(
            policy_of(programs, "sh:shell", str(programs / "bash"), denied=frozenset({"bash"})),
            _start("sh"),
        ).message
    )


def test_an_invalid_list_of_the_server_allows_nothing() -> None:
    assert (
        _refusal(HostPolicy(), _start("echo a", rules=ProjectRules(commands=["a b"]))).code
        == "COMMAND_NOT_ALLOWED"
    )


@pytest.mark.parametrize(
    "name",
    ["A", "HOME", "PAGER", "LESSOPEN", "INPUTRC", "LC_ALL", "POSIXLY_CORRECT", "BASH_FUNC_echo%%"],
)
def test_variables_that_may_change_a_listed_program_are_refused(programs: Path, name: str) -> None:
    assert (
        _refusal(policy_of(programs, "sleep"), _start("sleep 1", env={name: "x"})).code
        == "ENV_NOT_ALLOWED"
    )


def test_variables_of_language_and_terminal_are_allowed(programs: Path) -> None:
    policy_of(programs, "sleep").admit(
        _start("sleep 1", env={"LANG": "de_DE.UTF-8", "TZ": "UTC", "NO_COLOR": "1"})
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("LANGUAGE", "../../../../tmp/catalogues"),
        ("LANGUAGE", "de:../../tmp/x"),
        ("LANG", "/tmp/x"),
        ("LC_CTYPE", "../x"),
        ("TERM", "../../tmp/x"),
        ("TERM", "/tmp/x"),
        ("TZ", "/tmp/x"),
        ("TZ", ":/tmp/x"),
        ("TZ", "Etc/../../../../tmp/x"),
        ("LANG", "C\nX"),
    ],
)
def test_a_locale_or_terminal_variable_cannot_name_a_file(
    programs: Path, name: str, value: str
) -> None:
    failure = _refusal(policy_of(programs, "sleep"), _start("sleep 1", env={name: value}))
    assert (failure.code, value in failure.message) == ("ENV_NOT_ALLOWED", False)


@pytest.mark.parametrize(
    "value",
    [
        "UTC",
        "Europe/Berlin",
        ":Europe/Berlin",
        "EST5EDT,M3.2.0,M11.1.0/2:00:00",
        "<+03>-3",
        "Etc/GMT+3",
        "",
    ],
)
def test_a_time_zone_by_its_name_or_its_rules_is_no_path(programs: Path, value: str) -> None:
    env = {"TZ": value, "LANGUAGE": "de:en", "LANG": "sr_RS.UTF-8@latin"}
    assert policy_of(programs, "sleep").admit(_start("sleep 1", env=env)).env.items() >= env.items()


def test_directories_of_every_source_are_handed_to_the_holder(programs: Path) -> None:
    policy = HostPolicy(
        [
            PolicyFile(directories=("/srv", "/home")),
            PolicyFile(allowlist=Allowlist.parse(["sleep"]), search_path=str(programs)),
        ]
    )
    admitted = policy.admit(_start("sleep 1", rules=ProjectRules(directories=["/srv/work"])))
    assert admitted.admission is not None
    assert admitted.admission.roots == [["/srv", "/home"], ["/srv/work"]]
    assert HostPolicy().admit(
        _start("x", rules=ProjectRules(directories=[]))
    ).admission == Admission(roots=[[]])


def test_while_the_kill_switch_is_there_nothing_is_started(tmp_path: Path) -> None:
    policy = HostPolicy(switch=KillSwitch([tmp_path / "stop"], tmp_path / "stopped"))
    assert policy.stopped is None
    # A link that leads nowhere counts as a stop, too: nobody makes one to let the host go on.
    (tmp_path / "stop").symlink_to("nowhere")
    assert _refusal(policy, _start("echo a")).code == "HOST_STOPPED"
    assert "stopped" in {entry.name for entry in tmp_path.iterdir()}


def test_a_stop_wins_over_everything_that_a_policy_allows(tmp_path: Path, programs: Path) -> None:
    switch = KillSwitch([tmp_path / "stop"], tmp_path / "stopped")
    allowing = PolicyFile(allowlist=Allowlist.parse(["sleep"]), search_path=str(programs))
    policy = HostPolicy([allowing], switch)
    assert policy.admit(_start("sleep 1")).argv
    (tmp_path / "stop").mkdir()
    for start in (_start("sleep 1"), RunCommand(seq=1, session_id="s", command="sleep 1")):
        assert _refusal(policy, start).code == "HOST_STOPPED"


def test_limits_and_users_of_every_file_hold_with_and_without_a_list(programs: Path) -> None:
    files = [
        PolicyFile(limits=ResourceLimits(processes=9, open_files=50)),
        PolicyFile(keeps_user=True, limits=ResourceLimits(processes=7)),
    ]
    for listed in (
        [],
        [PolicyFile(allowlist=Allowlist.parse(["sleep"]), search_path=str(programs))],
    ):
        policy = HostPolicy([*files, *listed])
        claimed = Admission(keeps_user=False, program="/bin/sh")
        start = policy.admit(
            _start("sleep 1", limits=ResourceLimits(processes=8, memory_bytes=5), admission=claimed)
        )
        assert start.limits == ResourceLimits(processes=7, memory_bytes=5, open_files=50)
        assert start.admission is not None
        assert start.admission.keeps_user
    assert HostPolicy([PolicyFile()]).admit(_start("sleep 1")).limits == ResourceLimits()
