"""How the scenarios of the table are written."""

import sys
from pathlib import Path

import pytest

from tests.support.hosts.truth import Ends, Scenario, Waits, Works

SYSTEM_PYTHON = next(
    (path for path in ("/usr/bin/python3", "/usr/local/bin/python3") if Path(path).exists()),
    sys.executable,
)
QUIET = "kernel+quiet"
_FIXTURES = Path(__file__).parents[1] / "fixtures"


def sh(script: str) -> tuple[str, ...]:
    return ("bash", "-c", script)


def python(code: str, *arguments: str) -> tuple[str, ...]:
    return (SYSTEM_PYTHON, "-c", code, *arguments)


def fixture(name: str, *arguments: str) -> tuple[str, ...]:
    # As text, because an ordinary user may have no right to read these files.
    return python((_FIXTURES / name).read_text(), *arguments)


def shell_session(ending: str) -> tuple[Waits | Works | Ends, ...]:
    prompt = ending + r"[^\n]*$"
    return (
        Waits(prompt, "shell", b"sleep 0.4\n"),
        Waits(prompt, "shell", b"cat\n"),
        Waits("cat\r\n", "line", b"\x04"),
        Waits(prompt, "shell", b"sleep 60 & sleep 0.3\n"),
        Waits(prompt, "shell", b"kill %1; exit 0\n", evidence="kernel|kernel+quiet"),
        Ends(None),
    )


def named(scenarios: list[Scenario]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "scenario", scenarios, ids=[scenario.name for scenario in scenarios]
    )
