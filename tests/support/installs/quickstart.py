"""``bin/quickstart`` as a person runs it: to its end, or running for as long as a block lasts."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from pathlib import Path

from tests.support.mcp.client import Caller, connect
from tests.support.processes import describe, pids_mentioning
from tests.support.waiting import ConditionNotMetError, wait_until

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 200
ENDING_SECONDS = 5


def environment(port: int | str, **extra: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"HOLDLINE_DATA_DIR", "HOLDLINE_CALLED_FROM", "DATABASE_URL"}
    }
    return {**kept, "PORT": str(port), "PYTHON": sys.executable, **extra}


def run(
    *arguments: str, port: int | str, root: Path = ROOT, **extra: str
) -> subprocess.CompletedProcess[str]:
    command = [str(root / "bin" / "quickstart"), *arguments]
    return subprocess.run(
        command,
        env=environment(port, **extra),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def manage(data_dir: Path, *arguments: str) -> str:
    """The output of a command of manage.py, which must succeed."""
    environment = {
        **os.environ,
        "HOLDLINE_DATA_DIR": str(data_dir),
        "DJANGO_SETTINGS_MODULE": "config.settings.base",
    }
    command = [sys.executable, "manage.py", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout


@contextmanager
def staying_up(
    data_dir: Path, port: int, *arguments: str, **extra: str
) -> Iterator[subprocess.Popen[str]]:
    """A quickstart that stays up, killed after the block if it still runs.

    ``printed(data_dir)`` returns what it has printed.
    """
    log = data_dir.with_suffix(".log")
    command = [str(ROOT / "bin" / "quickstart"), "--data-dir", str(data_dir), *arguments]
    with log.open("w") as output:
        process = subprocess.Popen(
            command,
            env=environment(port, **extra),
            stdout=output,
            stderr=output,
            text=True,
            start_new_session=True,
        )
    try:
        wait_until(
            lambda: process.poll() is not None or "Ctrl-C ends" in log.read_text(),
            SECONDS,
            "the quickstart to be up",
        )
        assert process.poll() is None, log.read_text()
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(SECONDS)


def printed(data_dir: Path) -> str:
    """Everything that the quickstart of ``staying_up`` has printed so far."""
    return data_dir.with_suffix(".log").read_text()


def left_behind(data_dir: Path) -> list[str]:
    """Processes that name ``data_dir`` and do not end within some seconds.

    Holders end by themselves when the daemon has gone, so they may need a moment more.
    """
    with suppress(ConditionNotMetError):
        wait_until(lambda: not pids_mentioning(str(data_dir)), ENDING_SECONDS, "them to end")
    return [describe(pid) for pid in pids_mentioning(str(data_dir))]


def caller_of(data_dir: Path) -> AbstractAsyncContextManager[Caller]:
    """A caller with the token and the address in the quickstart's ``mcp.json``."""
    server = json.loads((data_dir / "mcp.json").read_text())["mcpServers"]["holdline"]
    return connect(server["url"], server["headers"]["Authorization"].removeprefix("Bearer "))
