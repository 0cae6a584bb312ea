"""What a project allows: its own lists or the settings, and what the host is sent."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.programs import can_spawn
from controller_client.protocol.messages import ProjectRules, ResourceLimits
from projects.accounts.authentication import Caller
from projects.errors.access import ScopeMissing
from projects.errors.commands import CommandNotAllowed, CwdNotAllowed
from projects.models import CommandSession, Project
from projects.policy.command_rules import Rules, rules_of, takes_lines
from projects.policy.launch import Launch
from projects.policy.typed_input import Typing
from tests.support.corpora.bypass_attempts import attempts

pytestmark = pytest.mark.django_db


def _rules(commands: list[str] | None = None, directories: list[str] | None = None) -> Rules:
    return rules_of(
        Project.objects.create(
            name=f"p{uuid4()}", allowed_commands=commands, allowed_directories=directories
        ).id
    )


def _launch(command: str, **more: Any) -> Launch:
    return Launch(kind=CommandSession.Kind.ONE_SHOT, command=command, **more)


def _caller(*scopes: str) -> Caller:
    return Caller(uuid4(), "x", frozenset(scopes))


def test_a_project_s_own_list_stands_before_the_setting(settings: Any) -> None:
    settings.ALLOWED_COMMANDS, settings.ALLOWED_DIRECTORIES = ["sleep"], ["/srv"]
    assert _rules().project == ProjectRules(commands=["sleep"], directories=["/srv"])
    assert _rules(["echo"], ["/tmp"]).project == ProjectRules(
        commands=["echo"], directories=["/tmp"]
    )
    assert _rules([]).project.commands == []
    assert _rules(["*"]).project.commands is None
    settings.ALLOWED_COMMANDS, settings.ALLOWED_DIRECTORIES = ["*"], []
    assert _rules().project == ProjectRules()
    assert rules_of(UUID(int=0)).commands.is_open


def test_a_start_carries_the_projects_limits_or_else_the_settings(settings: Any) -> None:
    settings.LIMIT_PROCESSES, settings.LIMIT_MEMORY_BYTES = 100, 1 << 30
    for commands in (["*"], ["echo"], ["echo", "sleep"]):
        project = Project.objects.create(name=f"p{uuid4()}", allowed_commands=commands)
        for command in ("echo a", "echo a; echo b"):
            allowed = rules_of(project.id).judge(None, _launch(command))
            assert allowed.limits == ResourceLimits(processes=100, memory_bytes=1 << 30)
    project.session_limits = {"processes": 5, "memory_bytes": None, "open_files": 64}
    project.save()
    assert rules_of(project.id).limits == ResourceLimits(processes=5, open_files=64)
    one_shot = rules_of(project.id).judge(None, _launch("echo a"))
    assert one_shot.limits == ResourceLimits(processes=5, open_files=64)


def test_without_a_list_a_start_is_any_program_and_the_token_must_say_so() -> None:
    start = _launch("echo $(id)")
    for scopes in ((), ("session:start",)):
        with pytest.raises(ScopeMissing):
            _rules().judge(_caller(*scopes), start)
    assert _rules().judge(_caller("shell:any"), start).command == "echo $(id)"
    assert _rules().judge(None, start).argv is None


def test_with_a_list_the_token_needs_no_more_and_the_host_gets_words() -> None:
    rules = _rules(["echo", "sleep"])
    single = rules.judge(_caller("session:start"), _launch("echo 'a  b'"))
    assert (single.command, single.argv, single.rules.commands) == (
        None,
        ["echo", "a  b"],
        ["echo", "sleep"],
    )
    several = rules.judge(None, _launch("sleep 1 && echo a\\;b"))
    assert (several.command, several.argv) == ("sleep 1 && echo 'a;b'", None)
    one_shot = rules.judge(None, _launch("echo a"))
    assert (one_shot.argv, one_shot.rules.commands) == (["echo", "a"], ["echo", "sleep"])


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("lines"))
def test_every_attempt_is_refused_and_the_part_named(
    allowed: list[str], attempt: str, part: str
) -> None:
    rules = Rules(
        commands=Allowlist.parse(allowed),
        project=ProjectRules(commands=allowed),
        limits=ResourceLimits(),
    )
    with pytest.raises(CommandNotAllowed) as refused:
        rules.judge(None, _launch(attempt))
    assert ascii(part)[1:-1] in str(refused.value)
    usable = [name for name in allowed if not can_spawn(name)]
    assert (min(usable) if usable else "No command is allowed") in refused.value.hint


def test_the_hint_has_the_programs_that_a_caller_may_run() -> None:
    rules = _rules(["python3:shell", "git", "sleep", "/opt/tool/bin/run"])
    for act in (
        lambda: rules.judge(None, _launch("git pull")),
        lambda: rules.check_typed(Typing(data=b"git pull\n"), is_hidden=False),
    ):
        with pytest.raises(CommandNotAllowed) as refused:
            act()
        assert refused.value.hint.endswith(" of these programs: /opt/tool/bin/run, python3, sleep.")
        for name in ("/opt/tool/bin/run", "python3", "sleep"):
            rules.judge(None, _launch(f"{name} 1"))
    with pytest.raises(CommandNotAllowed) as refused:
        _rules(["git"]).judge(None, _launch("git pull"))
    assert refused.value.hint == "No command is allowed in this project; ask its operator."


@pytest.mark.parametrize(
    "cwd", ["/etc", "/", "/srv/..", "/srv/../etc", "/srvx", "/srv/a/../../etc", "//etc"]
)
def test_a_directory_outside_is_refused(cwd: str) -> None:
    with pytest.raises(CwdNotAllowed) as refused:
        _rules(None, ["/srv", "/tmp/"]).judge(None, _launch("x", cwd=cwd))
    assert "/srv" in refused.value.hint


@pytest.mark.parametrize(
    "cwd", [None, "/srv", "/srv/", "/srv/a//b/.", "/tmp/x", "relative/to/home"]
)
def test_a_directory_inside_or_one_only_the_host_can_judge_passes(cwd: str | None) -> None:
    sent = _rules(None, ["/srv", "/tmp/"]).judge(None, _launch("x", cwd=cwd))
    assert sent.rules.directories == ["/srv", "/tmp/"]


def test_a_hidden_input_is_not_quoted() -> None:
    typing = Typing(data=b"hunter2\n")
    for is_hidden in (True, False):
        with pytest.raises(CommandNotAllowed) as refused:
            _rules(["echo"]).check_typed(typing, is_hidden=is_hidden)
        assert ("hunter2" in str(refused.value)) is not is_hidden
    _rules().check_typed(typing, is_hidden=False)


@pytest.mark.parametrize("key", ["Ctrl+C", "^D", "Return"])
def test_a_key_is_judged_however_it_is_written(key: str) -> None:
    _rules(["bash:shell"]).check_typed(Typing(keys=(key,)), is_hidden=False)


def test_what_a_shell_is_given_to_read_is_checked_as_well() -> None:
    rules = _rules(["bash:shell", "echo", "cat"])
    for text in ("id", "echo a\nid\n", "echo $(id)\n"):
        with pytest.raises(CommandNotAllowed):
            rules.judge(None, _launch("bash", stdin_text=text))
        with pytest.raises(CommandNotAllowed):
            rules.judge(None, _launch("bash -s", stdin_text=text))
        assert rules.judge(None, _launch("cat", stdin_text=text)).argv == ["cat"]
    assert rules.judge(None, _launch("bash", stdin_text="echo a\necho b")).argv == ["bash"]


@pytest.mark.parametrize(
    ("command", "kind", "takes"),
    [
        ("bash", "", True),
        ("sleep 1; /bin/sh -i", "", True),
        ("zsh $(x", "line", True),
        ("cat", "shell", True),
        ("cat", "line", False),
        ("python3", "line", False),
        ("", "", False),
    ],
)
def test_a_shell_and_a_terminal_at_a_shell_s_prompt_take_command_lines(
    command: str, kind: str, takes: bool
) -> None:
    assert takes_lines(command, kind) is takes
