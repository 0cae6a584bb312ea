"""What a line looks like."""

import pytest

from controller_client.terminal_state.prompt_text import Likeness, asks_for_one_key, asks_for_secret, likeness, reads_like_shell


@pytest.mark.parametrize(
    "line",
    [
        "Name: ", "Continue? [y/N] ", "Proceed (Y/n)? ", ">>> ", "root@host:~# ", "$ ", "Password:", "zsh% ", "mysql> ", "(END)",
        "--More--(12%)", "press any key", "version: (1.0.0) ", "Are you sure (yes/no/[fingerprint])? ", "Enter choice", "\u276f ",
    ],
)  # fmt: skip
def test_prompts_look_like_prompts(line: str) -> None:
    assert likeness(line) is Likeness.PROMPT


@pytest.mark.parametrize("line", ["building", "Working...", "12.5 MB/s", "compiling main.c"])
def test_other_text_is_only_text(line: str) -> None:
    assert likeness(line) is Likeness.TEXT


@pytest.mark.parametrize("line", ["", "   "])
def test_an_empty_line_is_nothing(line: str) -> None:
    assert likeness(line) is Likeness.NONE


@pytest.mark.parametrize(
    "line", ["Password: ", "[sudo] password for ada: ", "Enter passphrase for key: ", "Oracle passwd: ", "PIN: ", "Verification code: "]
)
def test_secrets_are_recognised(line: str) -> None:
    assert asks_for_secret(line)


def test_an_ordinary_question_is_no_secret() -> None:
    assert not asks_for_secret("Name: ")
    assert not asks_for_secret("spinning")


def test_one_key_questions_are_recognised() -> None:
    assert asks_for_one_key("Press any key to continue")
    assert not asks_for_one_key("Name: ")


def test_shell_prompts_are_recognised() -> None:
    assert reads_like_shell("ada@host:~$ ")
    assert not reads_like_shell("Name: ")
