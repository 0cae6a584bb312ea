"""The completion is tried in the shells themselves."""

import os
import subprocess
import sys
from functools import cache

import pytest

# Only compinit, which asks about the files of the machine, is left out.
BEFORE = {"bash": "", "zsh": "compdef() { :; }\n"}
SHELLS = list(BEFORE)
OFFERED = [
    ("ser", {"service"}),
    ("service st", {"start", "stop", "status"}),
    ("service install --allow", {"--allow-sudo"}),
    ("service install --server https://h --allow", {"--allow-sudo"}),
    ("run --max-p", {"--max-processes"}),
    ("kill --a", {"--all"}),
    ("completion ", {"bash", "zsh"}),
]


@cache
def _script(shell: str) -> str:
    return subprocess.run(
        [sys.executable, "-m", "controller_client", "completion", shell],
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def _asked(shell: str, typed: str) -> tuple[list[str], str]:
    """Return what the function offers for ``typed``, and what the shell complains of."""
    words = ["holdline-controller", *typed.split(" ")]
    quoted = " ".join(f"'{word}'" for word in words)
    ask = (
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; "
        f"_holdline_controller x '{words[-1]}' '{words[-2]}'; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    no_startup_files = "--norc" if shell == "bash" else "-f"
    asked = subprocess.run(
        [shell, no_startup_files, "-c", BEFORE[shell] + _script(shell) + ask],
        capture_output=True,
        text=True,
        check=True,
        # A bash that does not know the locale of the environment warns of it.
        env={**os.environ, "LC_ALL": "C.UTF-8"},
    )
    return asked.stdout.splitlines(), asked.stderr


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("typed", "offered"), OFFERED)
def test_a_shell_offers_what_the_parser_knows(shell: str, typed: str, offered: set[str]) -> None:
    words, complaint = _asked(shell, typed)
    assert (offered - set(words), complaint) == (set(), "")
    # In zsh the editor takes those that begin as typed.
    if shell == "bash":
        assert all(word.startswith(typed.rsplit(" ", maxsplit=1)[-1]) for word in words)


def test_a_file_is_offered_for_an_option_that_names_one() -> None:
    assert "/etc/passwd" in _asked("bash", "run --policy /etc/passw")[0]


def test_commands_are_offered_once_and_not_after_another_command() -> None:
    words, _ = _asked("bash", "sessions ")
    assert sorted(words) == sorted({"-h", "--help", "--config", "--state-dir", "--json"})
