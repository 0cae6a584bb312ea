"""The judge of calls: what a person is asked about, under each policy."""

import re
from typing import Any

import pytest

from projects.policy.call_risk import (
    ASK_ALL,
    ASK_RISKY,
    AUTO,
    NEVER_ASKING,
    QUIET_ARGUMENTS,
    STARTERS,
    TOOLS,
    TYPERS,
    Standing,
    is_asked,
    judged,
)
from projects.policy.harmless_commands import HARMLESS_PROGRAMS, why_not_harmless
from projects.tools.registry import ALL_TOOLS, tool_named
from tests.support.corpora import risky_lines
from tests.support.stack import PROJECT_ROOT

AT_SHELL = Standing(prompt_kind="shell", is_own=True)
LINE_TOOLS = ("execute_command", "start_command", "start_interactive_command", "run_command")


def _asked(
    policy: str, tool: str, arguments: dict[str, Any], standing: Standing = AT_SHELL
) -> bool:
    return is_asked(policy, judged(tool, arguments, standing))


@pytest.mark.parametrize("line", risky_lines.ALL)
def test_ask_risky_asks_about_a_line_that_is_not_known(line: str) -> None:
    assert _asked(ASK_RISKY, "execute_command", {"command": line})
    assert _asked(ASK_RISKY, "send_command_input", {"session_id": "x", "input_text": line + "\n"})


@pytest.mark.parametrize("line", risky_lines.HARMLESS)
def test_ask_risky_lets_a_line_pass_that_is_known(line: str) -> None:
    assert why_not_harmless(line) is None
    for tool in LINE_TOOLS:
        assert not _asked(ASK_RISKY, tool, {"command": line})
    assert not _asked(
        ASK_RISKY, "send_command_input", {"session_id": "x", "input_text": line + "\n"}
    )


@pytest.mark.parametrize("line", [*risky_lines.HARMLESS, *risky_lines.ALL])
def test_ask_all_asks_about_every_start_and_every_input(line: str) -> None:
    for tool in LINE_TOOLS:
        assert _asked(ASK_ALL, tool, {"command": line})
    assert _asked(ASK_ALL, "send_command_input", {"session_id": "x", "input_text": line})
    assert _asked(ASK_ALL, "write_input", {"sessionId": "x", "input": line})


@pytest.mark.parametrize(
    "beside",
    [
        {"input": "rm x\n"},
        {"env": {"LD_PRELOAD": "/tmp/e.so"}},
        {"env": {"LANG": "C"}},
        {"cwd": "/proc/self/cwd"},
        {"cwd": "relative"},
        {"cwd": "/srv/../etc"},
        {"cwd": "/home/deploy/.ssh"},
        {"cwd": "/tmp/a\nb"},
        {"working_directory": "~"},
        {"argument_of_tomorrow": True},
    ],
)
def test_a_harmless_line_is_not_known_with_more_beside_it(beside: dict[str, Any]) -> None:
    assert _asked(ASK_RISKY, "execute_command", {"command": "ls", **beside})
    assert not _asked(
        ASK_RISKY,
        "execute_command",
        {"command": "ls", "cwd": "/srv/app", "input": "", "env": {}, "timeout_seconds": 5},
    )


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("send_command_input", {"keys": ["up", "enter"]}),
        ("send_command_input", {"keys": ["ctrl-c"]}),
        ("send_command_input", {"keys": ["ctrl-d"]}),
        ("send_command_input", {"keys": ["enter"]}),
        ("send_command_input", {"input_text": "ls\n", "keys": ["enter"]}),
        ("send_command_input", {"input_text": "ls"}),
        ("send_command_input", {"input_text": "ls\n\n"}),
        ("send_command_input", {"input_text": "ls\r"}),
        ("send_command_input", {"input_text": "\r"}),
        ("send_command_input", {"input_text": "\x03"}),
        ("send_command_input", {"input_text": "\x04"}),
        ("send_command_input", {"input_text": "\x1b[A\n"}),
        ("send_command_input", {"input_text": "ls\n", "terminate": True}),
        ("send_command_input", {"input_text": "ls\n", "argument_of_tomorrow": 1}),
        ("send_command_input", {"secret": "sudo"}),
        ("write_input", {"input": "ls\n"}),
        ("write_input", {"input": "", "eof": True}),
        ("stop_command", {"signal": "SIGHUP"}),
        ("stop_command", {"signal": "SIGUSR1"}),
        ("stop_command", {"signal": "SIGINT"}),
        ("stop_session_monitor", {}),
        ("stop_session_monitor", {"save_log": False}),
        ("stop_session_monitor", {"save_log": "true"}),
        ("tool_of_tomorrow", {}),
    ],
)
def test_ask_risky_asks_about_input_and_signals_that_are_not_known(
    tool: str, arguments: dict[str, Any]
) -> None:
    assert _asked(ASK_RISKY, tool, arguments)


@pytest.mark.parametrize(
    "standing",
    [
        Standing(),
        Standing(prompt_kind="", is_own=True, is_vouched=True),
        Standing(prompt_kind="line", is_own=True, is_vouched=True),
        Standing(prompt_kind="secret", is_own=True, is_vouched=True),
        Standing(prompt_kind="screen", is_own=True, is_vouched=True),
        Standing(prompt_kind="key", is_own=True, is_vouched=True),
        Standing(prompt_kind="shell", is_own=False),
    ],
)
def test_what_is_typed_is_known_only_at_a_shells_prompt_that_was_reached(
    standing: Standing,
) -> None:
    assert _asked(ASK_RISKY, "send_command_input", {"input_text": "ls\n"}, standing)


def test_ending_an_own_session_is_allowed_and_another_one_needs_approval() -> None:
    for tool, arguments in (
        ("stop_command", {}),
        ("stop_command", {"signal": "SIGTERM"}),
        ("send_command_input", {"terminate": True}),
    ):
        assert not _asked(ASK_RISKY, tool, arguments, Standing(is_own=True))
        assert _asked(ASK_RISKY, tool, arguments, Standing())


def test_a_secret_for_a_session_a_person_approved_needs_no_second_answer() -> None:
    arguments = {"secret": "sudo"}
    assert not _asked(
        ASK_RISKY, "send_command_input", arguments, Standing("secret", is_own=True, is_vouched=True)
    )
    assert judged("send_command_input", arguments, Standing("secret", is_own=True)).risk == "secret"


@pytest.mark.parametrize("tool", [tool.name for tool in ALL_TOOLS])
def test_ask_all_asks_about_every_tool_but_those_that_only_read(tool: str) -> None:
    assert tool in TOOLS, "say in projects.policy.call_risk what this tool does"
    # A call that types nothing only waits on.
    only_reads = tool in {*NEVER_ASKING, "send_command_input"}
    arguments = {
        "session_id": "x",
        "wait_seconds": 5,
        "wait_for": "x",
        "max_output_bytes": 9,
        "view": "screen",
    }
    assert _asked(ASK_ALL, tool, arguments) is not only_reads
    assert tool_named(tool).is_read_only is (TOOLS[tool] == "reads")


@pytest.mark.parametrize("tool", [name for name in TOOLS if name not in NEVER_ASKING])
def test_a_call_that_may_be_held_can_be_repeated_as_the_same_one(tool: str) -> None:
    assert {"request_id", "requestId"} & set(tool_named(tool).argument_names)


@pytest.mark.parametrize("tool", sorted(STARTERS | TYPERS))
def test_every_argument_is_known_to_be_quiet_or_is_asked_about(tool: str) -> None:
    acting = {
        "command",
        "input",
        "cwd",
        "working_directory",
        "env",
        "input_text",
        "keys",
        "secret",
        "terminate",
        "ask_person",
        "eof",
    }
    unknown = set(tool_named(tool).argument_names) - QUIET_ARGUMENTS - acting
    assert unknown == set(), (
        "put it among QUIET_ARGUMENTS of projects.policy.call_risk if it changes nothing of what "
        "is done, or here"
    )


def test_no_policy_is_laxer_than_it_says() -> None:
    risky, reading = judged("execute_command", {"command": "rm x"}), judged("list_sessions", {})
    harmless = judged("execute_command", {"command": "ls"})
    assert [is_asked(AUTO, one) for one in (risky, harmless, reading)] == [False, False, False]
    assert [is_asked(ASK_RISKY, one) for one in (risky, harmless, reading)] == [True, False, False]
    assert [is_asked(ASK_ALL, one) for one in (risky, harmless, reading)] == [True, True, False]
    assert [is_asked("policy-of-tomorrow", one) for one in (risky, harmless, reading)] == [
        True,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("ls -la /etc", "reading"),
        ("make -j2", "unclear"),
        ("ls | head", "unclear"),
        ("rm -rf /tmp/x", "destructive"),
        ("git push --force", "destructive"),
        ("for i in 1 2; do rm $i; done", "destructive"),
        ("echo $(rm x)", "destructive"),
        ("bash -c 'rm x'", "destructive"),
        ("find . -delete", "destructive"),
        ("echo x | xargs rm", "destructive"),
        ("timeout -k 5 10 rm x", "destructive"),
        ("command rm x", "destructive"),
        ("sudo ls", "privileged"),
        ("/usr/bin/sudo -n ls", "privileged"),
        ("env A=b su -c ls", "privileged"),
        ("echo ok && sudo reboot", "privileged"),
        ("$PROGRAM x", "unclear"),
        ("curl http://x | sh", "unclear"),
        ("echo 'unclosed", "unclear"),
    ],
)
def test_the_class_sorts_what_is_asked(line: str, risk: str) -> None:
    assert judged("execute_command", {"command": line}).risk == risk


def test_the_reason_says_what_was_judged_and_quotes_no_input() -> None:
    assert judged("execute_command", {"command": "rm a\u202eb"}).reason == "runs 'rm a\\u202eb'"
    assert judged(
        "execute_command", {"command": "ls", "env": {"LD_PRELOAD": "x"}}
    ).reason.startswith("sets 'LD_PRELOAD'")
    typed = judged(
        "send_command_input", {"input_text": "hunter2 rm\n"}, Standing("secret", is_own=True)
    )
    assert "hunter2" not in typed.reason


def test_programs_that_can_be_made_to_run_others_are_not_listed() -> None:
    from controller_client.command_policy.programs import can_spawn

    assert [name for name in sorted(HARMLESS_PROGRAMS) if can_spawn(name)] == []


def test_the_documents_list_every_program_that_passes() -> None:
    page = (PROJECT_ROOT / "docs/howto/approvals.md").read_text()
    section = page.partition("## What `ask-risky` lets pass")[2].partition(
        "harmless_commands.py`: "
    )[2]
    listed = re.findall(r"`(\w+)`", section.partition("|")[0])
    assert listed == sorted(HARMLESS_PROGRAMS)


@pytest.mark.parametrize(
    "line", ["x " + "1" * 500_000 + "a", "a $(" * 100_000 + "a" + ")" * 100_000, "cat " * 200_000]
)
def test_a_line_of_any_length_is_judged_in_a_moment(line: str) -> None:
    for arguments in ({"command": line}, {"command": "bash", "input": line}):
        assert _asked(ASK_RISKY, "execute_command", arguments)
