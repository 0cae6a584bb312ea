"""A line of text looks like a prompt, like a question for a secret, or like neither."""

import pytest

from controller_client.terminal_state.prompt.text import (
    Likeness,
    asks_for_one_key,
    asks_for_secret,
    asks_surely_for_key,
    likeness,
    reads_like_shell,
)


@pytest.mark.parametrize(
    "line",
    [
        "Name: ", "Continue? [y/N] ", "Proceed (Y/n)? ", ">>> ", "root@host:~# ", "$ ",
        "Password:", "zsh% ", "mysql> ", "(END)",
        "--More--(12%)", "press any key", "version: (1.0.0) ",
        "Are you sure (yes/no/[fingerprint])? ", "Enter choice", "\u276f ",
        "? Project name", "? Project name (x) ab", "Save as?", "Size [5 MB]: ", "Count [5] ",
        "Please enter your name", "Continue? (2/3)", "Press any key (3 s)", "Delete file(s)? ",
    ],
)  # fmt: skip
def test_prompts_look_like_prompts(line: str) -> None:
    assert likeness(line) is Likeness.PROMPT


@pytest.mark.parametrize(
    "line",
    [
        "building", "Working...", "12.5 MB/s", "compiling main.c", "Progress [5 MB]", "done (45%)",
        "Step [1/5]", "[####    ]", "[=>  ]", "took (3.2 s)", "Reading [1.2 MiB/s]", "Please wait",
        "Removing package(s)", "3 tests pass", "pass",
    ],
)  # fmt: skip
def test_other_text_is_only_text(line: str) -> None:
    assert likeness(line) is Likeness.TEXT


@pytest.mark.parametrize("line", ["", "   "])
def test_an_empty_line_is_nothing(line: str) -> None:
    assert likeness(line) is Likeness.NONE


@pytest.mark.parametrize(
    "line",
    [
        "Password: ",
        "[sudo] password for ada: ",
        "Enter passphrase for key: ",
        "Oracle passwd: ",
        "PIN: ",
        "Verification code: ",
        "ada@host's password: ",
        "Password for 'https://x@y': ",
        "Enter passphrase (empty for no passphrase): ",
        "Enter same passphrase again: ",
        "Retype new password: ",
        "(ada@h) Password:",
        "Enter PIN for 'YubiKey': ",
        "? Password \u203a ***",
        "Token: ",
        "API key: ",
        "AWS Secret Access Key [None]: ",
        "password> ",
        "Password > ",
        "Enter password, or leave empty: ",
        "New password",
        "Pass: ",
        "Enter pass: ",
        "LICENSE KEY: ",
        "GitHub token? ",
        "Enter your password to continue: ",
        "? Password: [input is hidden] ",
        "? Password? \u2023 **",
    ],
)
def test_a_question_that_ends_in_the_name_of_a_secret_asks_for_one(line: str) -> None:
    assert asks_for_secret(line)


@pytest.mark.parametrize(
    "line",
    [
        "Name: ",
        "spinning",
        "shopping: ",
        "bypass: ",
        "3 tests pass",
        "First pass: ",
        "tests that pass: ",
        "tokens> ",
        "secrets> ",
        "token> ",
        "Path of the password file: ",
        "Password file: ",
        "Token name: ",
        "MariaDB [secrets]> ",
        "MariaDB [secret]> ",
        "tokens=# ",
        "secret=> ",
        "ada@host ~/token> ",
        "Store password unencrypted (yes/no)?",
        "Save password? (Y/n)",
        "Show password [y/N]: ",
        "Is this your password? [yes/no/quit] ",
        "Reset token (y|n)",
        "Name of the token",
        "Which token? ",
        "Password expired. New name: ",
    ],
)
def test_a_line_that_only_mentions_a_secret_asks_for_none(line: str) -> None:
    assert not asks_for_secret(line)


def test_one_key_questions_are_recognised() -> None:
    assert asks_for_one_key("Press any key to continue")
    assert not asks_for_one_key("Name: ")
    assert asks_for_one_key("(O)kay/(Q)uit? ")
    assert not asks_surely_for_key("(O)kay/(Q)uit? ")
    assert asks_surely_for_key("--More--")


def test_shell_prompts_are_recognised() -> None:
    assert reads_like_shell("ada@host:~$ ")
    assert reads_like_shell("thread> ")
    assert not reads_like_shell("read> ")
    assert not reads_like_shell("Name: ")


@pytest.mark.parametrize("unit", [",", " for", " (a)", " [a", "(", ":", " (?", "*", " and,", "\n"])
@pytest.mark.parametrize(
    "word",
    ["password", "any key", "please enter", "pass", "[5 MB", "(y/n", "name of token", "\u2022"],
)
def test_no_output_makes_a_look_take_long(word: str, unit: str) -> None:
    """An expression that tries each way to split such a text would go on for years."""
    for text in (word + unit * 40, word + unit * 20_000, (word + unit) * 5_000):
        for end in ("?x", "x", "\nx", ") x"):
            for judge in (likeness, asks_for_secret, asks_for_one_key, reads_like_shell):
                judge(text + end)
