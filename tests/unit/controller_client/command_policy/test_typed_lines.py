"""Lines that are typed into a running shell are held to the list that is in force."""

import pytest

from controller_client.command_policy.allowlist import Allowlist
from controller_client.command_policy.shell_grammar import CommandNotAllowed
from controller_client.command_policy.typed_lines import REFUSED_BUILTINS, check_input, listed
from tests.support.corpora.bypass_attempts import attempts

_CHECK = listed(Allowlist.parse(["sleep", "echo", "cat", "cd", "ls"]))


@pytest.mark.parametrize(("allowed", "attempt", "part"), attempts("typed"))
def test_a_refused_attempt_names_the_refused_part(
    allowed: list[str], attempt: str, part: str
) -> None:
    with pytest.raises(CommandNotAllowed) as refused:
        check_input(attempt.encode(), (), listed(Allowlist.parse(allowed)))
    assert refused.value.part == part


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "echo a\n",
        "echo a\r",
        "sleep 1 && echo done\n",
        "echo 'a b' | cat\n\n  \n",
        'echo "a b"; echo "c d"\n',
        "echo '(a; b)' \"it's\" | cat\n",
        "echo of'f' a=b x==y\n",
        "ls\ncd /tmp\nexit\n",
        "jobs\nfg\nbg\npwd\n",
        "\x03",
        "\x04",
        "\x1a",
    ],
)
def test_whole_lines_of_listed_programs_pass(text: str) -> None:
    check_input(text.encode(), (), _CHECK)


@pytest.mark.parametrize("key", ["enter", "ctrl-c", "ctrl-d", "ctrl-z"])
def test_keys_that_edit_nothing_pass(key: str) -> None:
    check_input(b"", (key, key), _CHECK)


@pytest.mark.parametrize(
    "key",
    [
        "up",
        "down",
        "left",
        "tab",
        "ctrl-r",
        "ctrl-o",
        "ctrl-a",
        "ctrl-w",
        "ctrl-y",
        "alt-.",
        "escape",
        "backspace",
        "f1",
        "space",
    ],
)
def test_keys_that_edit_the_line_are_refused(key: str) -> None:
    with pytest.raises(CommandNotAllowed) as refused:
        check_input(b"", ("ctrl-c", key), _CHECK)
    assert refused.value.part == key


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(CommandNotAllowed):
        check_input(b"echo \xff\n", (), _CHECK)


def test_a_builtin_that_changes_later_lines_is_refused_though_it_is_listed() -> None:
    check = listed(Allowlist.parse(sorted(REFUSED_BUILTINS - {".", ":", "["})))
    for name in ("printf", "test", "read", "wait", "alias"):
        with pytest.raises(CommandNotAllowed) as refused:
            check_input(f"{name} x\n".encode(), (), check)
        assert refused.value.part == name
