"""The completion is tried in a real bash."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ser", {"service"}),
        ("service st", {"start", "stop", "status"}),
        ("service install --allow", {"--allow-sudo"}),
        ("run --max-p", {"--max-processes"}),
        ("completion ", {"bash", "zsh"}),
    ],
)
def test_bash_offers_what_the_parser_knows(typed: str, offered: set[str]) -> None:
    script = subprocess.run(
        [sys.executable, "-m", "controller_client", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    *before, last = typed.split(" ")
    words = " ".join(f"'{word}'" for word in ("holdline-controller", *before, last))
    ask = (
        f"COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); "
        f"_holdline_controller x '{last}' y; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    )
    shown = subprocess.run(
        ["bash", "-c", script + ask], capture_output=True, text=True, check=True
    ).stdout
    assert offered <= set(shown.split())
    assert all(word.startswith(last) for word in shown.split())
