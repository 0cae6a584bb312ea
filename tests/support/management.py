"""Runs of ``manage.py`` in the environment of a running stack's server."""

import subprocess
import sys
from collections.abc import Mapping
from tempfile import TemporaryFile
from typing import IO

from tests.support.running.warm_start import start
from tests.support.stack import PROJECT_ROOT, Stack

COMMAND_SECONDS = 240.0


def manage(
    stack: Stack, *arguments: str, environment: Mapping[str, str] | None = None, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command without a terminal, whatever its exit code."""
    command = [sys.executable, "manage.py", *arguments]
    variables = stack.server_environment(**(environment or {}))
    with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as errors:
        given.write(stdin.encode())
        given.seek(0)
        streams = (given, out, errors)
        process = start(command, PROJECT_ROOT, variables, streams=streams, is_warm=stack.IS_WARM)
        try:
            code = process.wait(COMMAND_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise
        return subprocess.CompletedProcess(command, code, _text_of(out), _text_of(errors))


def _text_of(stream: IO[bytes]) -> str:
    stream.seek(0)
    return stream.read().decode()


def manage_well(stack: Stack, *arguments: str, stdin: str = "") -> str:
    """Run a command that must succeed, and return its standard output and error."""
    done = manage(stack, *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr
