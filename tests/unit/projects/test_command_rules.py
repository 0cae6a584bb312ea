"""What a project allows: its own lists or the settings, and what the host is sent."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.protocol.messages import ProjectRules, ResourceLimits, RunCommand, SendInput, StartInteractiveCmd
from projects import errors
from projects.authentication import Caller
from projects.command_rules import Rules, rules_of, takes_lines
from projects.models import Project
from tests.support.bypass_attempts import attempts

pytestmark = pytest.mark.django_db


def _rules(commands: list[str] | None = None, directories: list[str] | None = None) -> Rules:
    return rules_of(Project.objects.create(name=f"p{uuid4()}", allowed_commands=commands, allowed_directories=directories).id)


def _start(command: str, **more: Any) -> StartInteractiveCmd:
    return StartInteractiveCmd(seq=0, session_id="", command=command, **more)


def _caller(*scopes: str) -> Caller:
    return Caller(uuid4(), "x", frozenset(scopes))


def test_a_project_s_own_list_stands_before_the_setting(settings: Any) -> None:
    settings.ALLOWED_COMMANDS, settings.ALLOWED_DIRECTORIES = ["sleep"], ["/srv"]
    assert _rules().project == ProjectRules(commands=["sleep"], directories=["/srv"])
    assert _rules(["echo"], ["/tmp"]).project == ProjectRules(commands=["echo"], directories=["/tmp"])
    assert _rules([]).project.commands == []
    assert _rules(["*"]).project.commands is None
    settings.ALLOWED_COMMANDS = settings.ALLOWED_DIRECTORIES = None
    assert _rules().project == ProjectRules()
    assert rules_of(UUID(int=0)).commands.is_open


def test_what_a_session_may_use_goes_with_its_start_the_project_s_own_before_the_setting(settings: Any) -> None:
    settings.SESSION_LIMITS = {"processes": 100, "memory_bytes": 1 << 30, "file_size_bytes": None, "open_files": None}
    for commands in (["*"], ["echo"], ["echo", "sleep"]):
        project = Project.objects.create(name=f"p{uuid4()}", allowed_commands=commands)
        for command in ("echo a", "echo a; echo b"):
            assert rules_of(project.id).checked_start(None, _start(command)).limits == ResourceLimits(processes=100, memory_bytes=1 << 30)
    project.session_limits = {"processes": 5, "memory_bytes": None, "open_files": 64}
    project.save()
    assert rules_of(project.id).limits == ResourceLimits(processes=5, open_files=64)
    one_shot = rules_of(project.id).checked_start(None, RunCommand(seq=0, session_id="", command="echo a"))
    assert one_shot.limits == ResourceLimits(processes=5, open_files=64)


def test_without_a_list_a_start_is_any_program_and_the_token_must_say_so() -> None:
    start = _start("echo $(id)")
    for scopes in ((), ("session:start",)):
        with pytest.raises(errors.ScopeMissing):
            _rules().checked_start(_caller(*scopes), start)
    assert _rules().checked_start(_caller("shell:any"), start).command == "echo $(id)"
    assert _rules().checked_start(None, start).argv is None


def test_with_a_list_the_token_needs_no_more_and_the_host_gets_words() -> None:
    rules = _rules(["echo", "sleep"])
    single = rules.checked_start(_caller("session:start"), _start("echo 'a  b'"))
    assert (single.command, single.argv, single.rules.commands) == (None, ["echo", "a  b"], ["echo", "sleep"])
    several = rules.checked_start(None, _start("sleep 1 && echo a\\;b"))
    assert (several.command, several.argv) == ("sleep 1 && echo 'a;b'", None)
    one_shot = rules.checked_start(None, RunCommand(seq=0, session_id="", command="echo a"))
    assert (one_shot.argv, one_shot.rules.commands) == (["echo", "a"], ["echo", "sleep"])


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("lines"))
def test_every_attempt_is_refused_and_the_part_named(allowed: list[str], attempt: str, part: str) -> None:
    rules = Rules(commands=Allowlist.parse(allowed), project=ProjectRules(commands=allowed), limits=ResourceLimits())
    with pytest.raises(errors.CommandNotAllowed) as refused:
        rules.checked_start(None, _start(attempt))
    assert ascii(part)[1:-1] in str(refused.value)
    assert allowed[0] in refused.value.hint


@pytest.mark.parametrize("cwd", ["/etc", "/", "/srv/..", "/srv/../etc", "/srvx", "/srv/a/../../etc", "//etc"])
def test_a_directory_outside_is_refused(cwd: str) -> None:
    with pytest.raises(errors.CwdNotAllowed) as refused:
        _rules(None, ["/srv", "/tmp/"]).checked_start(None, _start("x", cwd=cwd))
    assert "/srv" in refused.value.hint


@pytest.mark.parametrize("cwd", [None, "/srv", "/srv/", "/srv/a//b/.", "/tmp/x", "relative/to/home"])
def test_a_directory_inside_or_one_only_the_host_can_judge_passes(cwd: str | None) -> None:
    sent = _rules(None, ["/srv", "/tmp/"]).checked_start(None, _start("x", cwd=cwd))
    assert (sent.cwd, sent.rules.directories) == (cwd, ["/srv", "/tmp/"])


def test_a_hidden_input_is_not_quoted() -> None:
    message = SendInput(seq=1, session_id="s", input_seq=1, data=b"hunter2\n")
    for is_hidden in (True, False):
        with pytest.raises(errors.CommandNotAllowed) as refused:
            _rules(["echo"]).check_typed(message, is_hidden=is_hidden)
        assert ("hunter2" in str(refused.value)) is not is_hidden
    _rules().check_typed(message, is_hidden=False)


def test_what_a_shell_is_given_to_read_is_checked_as_well() -> None:
    rules = _rules(["bash:shell", "echo", "cat"])
    for data in (b"id", b"echo a\nid\n", b"echo $(id)\n"):
        with pytest.raises(errors.CommandNotAllowed):
            rules.checked_start(None, RunCommand(seq=0, session_id="", command="bash", input=data))
        with pytest.raises(errors.CommandNotAllowed):
            rules.checked_start(None, _start("bash -s", stdin_data=data))
        assert rules.checked_start(None, RunCommand(seq=0, session_id="", command="cat", input=data)).argv == ["cat"]
    assert rules.checked_start(None, RunCommand(seq=0, session_id="", command="bash", input=b"echo a\necho b")).argv == ["bash"]


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
def test_a_shell_and_a_terminal_at_a_shell_s_prompt_take_command_lines(command: str, kind: str, takes: bool) -> None:
    assert takes_lines(command, kind) is takes
