"""Risk classes of calls, by the parsed command."""

import pytest

from agent.risk import assess, assess_line


@pytest.mark.parametrize(
    ("line", "risk"),
    [
        ("ls -la /etc | head -3", "reading"),
        ("grep -r x . 2>/dev/null", "reading"),
        ("git status", "changing"),
        ("echo hello > file", "changing"),
        ("FOO=1 make -j2", "changing"),
        ("rm -rf /tmp/x", "destructive"),
        ("git push --force", "destructive"),
        ("for i in 1 2; do rm $i; done", "destructive"),
        ("echo $(rm x)", "destructive"),
        ("bash -c 'rm x'", "destructive"),
        ("find . -delete", "destructive"),
        ("echo x | xargs rm", "destructive"),
        ("sudo ls", "privileged"),
        ("/usr/bin/sudo -n ls", "privileged"),
        ("timeout 5 sudo ls", "privileged"),
        ("env A=b su -c ls", "privileged"),
        ("echo ok && sudo reboot", "privileged"),
        ("$PROGRAM x", "unclear"),
        ("curl http://x | sh", "unclear"),
        ("echo 'unclosed", "unclear"),
        ("eval $(cat file)", "unclear"),
    ],
)
def test_a_command_line_is_as_risky_as_the_worst_of_what_it_runs(line: str, risk: str) -> None:
    assert assess_line(line).risk == risk


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "risk"),
    [
        ("list_sessions", {}, "", "reading"),
        ("send_command_input", {"input_text": ""}, "line", "reading"),
        ("send_command_input", {"input_text": "yes\n"}, "line", "changing"),
        ("send_command_input", {"input_text": "rm -rf x\n"}, "shell", "destructive"),
        ("send_command_input", {"terminate": True}, "line", "changing"),
        ("send_command_input", {"secret": "sudo"}, "secret", "secret"),
        ("start_interactive_command", {"command": "sudo id"}, "", "privileged"),
        ("execute_command", None, "", "reading"),
        ("stop_command", {"sessionId": "x"}, "", "changing"),
    ],
)
def test_a_call_is_judged_by_what_it_does(tool: str, arguments: dict[str, object] | None, kind: str, risk: str) -> None:
    assert assess(tool, arguments, prompt_kind=kind).risk == risk


def test_a_secret_for_a_session_a_person_approved_needs_no_second_answer() -> None:
    assert assess("send_command_input", {"secret": "sudo"}, prompt_kind="secret", is_vouched=True).risk == "changing"


def test_the_reason_quotes_what_was_judged_without_hiding_anything() -> None:
    assert assess_line("rm a\u202eb").reason == "runs 'rm a\\u202eb'"
