"""Runs of ``manage.py`` in the environment of a running stack's server."""

import subprocess
import sys
from collections.abc import Mapping

from tests.support.stack import PROJECT_ROOT, Stack

COMMAND_SECONDS = 240.0


def manage(
    stack: Stack, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal, whatever its exit code."""
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=PROJECT_ROOT,
        env=stack.server_environment(**(environment or {})),
        input=stdin,
        capture_output=True,
        text=True,
        timeout=COMMAND_SECONDS,
        check=False,
    )


def manage_well(stack: Stack, *arguments: str, stdin: str = "") -> str:
    """Run a command that must succeed, and return its standard output and error."""
    done = manage(stack, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
