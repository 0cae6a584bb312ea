"""Files of others for the console's pages, from a registry that may not answer."""

import io
import os
import shutil
import sys
from pathlib import Path

import pytest

from quickstart import __main__ as first_stage
from quickstart import browser_files, environment, preflight
from quickstart.console import Console
from quickstart.errors import StepFailed, SystemRefused
from tests.support.processes import pids_with_environment
from tests.support.waiting import wait_until

# Like that of a version manager: it runs the real npm as a child, which holds its output open.
_SILENT_NPM = "#!/bin/sh\nsleep 1000 &\nwait\n"
_CONSEQUENCE = "the console's pages show screens as text, and the next start fetches it again"


@pytest.fixture
def mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """The environment variable of an npm whose registry never answers."""
    (tmp_path / "npm").write_text(_SILENT_NPM)
    (tmp_path / "npm").chmod(0o755)
    lock = tmp_path / "lock"
    lock.mkdir()
    (lock / "package-lock.json").write_text("{}")
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("HOLDLINE_NPM_OF", str(tmp_path))
    monkeypatch.setattr(browser_files, "_LOCK", lock)
    monkeypatch.setattr(browser_files, "_PLACE", tmp_path / "vendor")
    monkeypatch.setattr(browser_files, "_NPM_SECONDS", 0.5)
    return f"HOLDLINE_NPM_OF={tmp_path}".encode()


def test_a_silent_registry_is_given_up_and_nothing_waits_on(mark: bytes) -> None:
    with pytest.raises(StepFailed, match=r"not done in 0\.5 s"):
        browser_files.ensure(Path(sys.executable), Console(io.StringIO()))
    wait_until(lambda: not pids_with_environment(mark), 30, "npm and its child to end")


@pytest.mark.usefixtures("mark")
def test_a_fetch_says_first_how_long_it_may_take_and_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stream = io.StringIO()
    told: list[str] = []

    def which(_name: str) -> None:
        told.append(stream.getvalue())
        raise OSError("no programs")

    monkeypatch.setattr(shutil, "which", which)
    with pytest.raises(SystemRefused, match="no programs"):
        browser_files.ensure(Path(sys.executable), Console(stream))
    (before,) = told
    assert before.splitlines() == [
        "==> Fetching the terminal emulator of the console's pages from npm",
        f"    for at most 0.5 s; without it, {_CONSEQUENCE}",
    ]


@pytest.mark.usefixtures("mark")
def test_the_quickstart_goes_on_without_the_files(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    goes_on: list[str] = []
    monkeypatch.setattr(sys, "argv", ["quickstart", "--once"])
    monkeypatch.setattr(preflight, "check", lambda _options: None)
    monkeypatch.setattr(environment, "ensure", lambda _lock, _console: Path("python"))
    monkeypatch.setattr(os, "chdir", lambda _place: None)
    monkeypatch.setattr(os, "execv", lambda _path, arguments: goes_on.extend(arguments))
    first_stage.main()
    assert goes_on == ["python", "-m", "quickstart.run", "--once"]
    printed = capsys.readouterr().out
    assert "error: npm failed:\n    not done in 0.5 s\n" in printed
    assert f"Going on without it: {_CONSEQUENCE}." in printed


@pytest.mark.usefixtures("mark")
def test_ctrl_c_while_the_files_are_fetched_is_no_traceback(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(sys, "argv", ["quickstart", "--once"])
    monkeypatch.setattr(preflight, "check", lambda _options: None)
    monkeypatch.setattr(environment, "ensure", lambda _lock, _console: Path("python"))
    monkeypatch.setattr(shutil, "which", interrupted)
    with pytest.raises(SystemExit):
        first_stage.main()
    assert capsys.readouterr().out.endswith("stopped; run bin/quickstart again to continue\n")
