"""``.venv`` is reused while its lock and its place have not changed."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path

import pytest

from quickstart import environment
from quickstart.console import Console
from quickstart.environment import ensure


class Calls(list[str]):
    """The steps that ``ensure`` would take. The quickstart's own tests take them for real."""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Calls:
    made = Calls()
    (tmp_path / ".venv").mkdir()
    (tmp_path / "requirements.txt").write_text("django==5.2\n")
    (tmp_path / "requirements-dev.txt").write_text("django==5.2\npytest==9\n")
    monkeypatch.setattr(environment, "ROOT", tmp_path)
    monkeypatch.setattr(environment, "_STAMP", tmp_path / ".venv" / "stamp.json")
    monkeypatch.setattr(environment, "_MADE_AT", str(tmp_path / ".venv"))
    monkeypatch.setattr(environment, "_runs", lambda _python: True)
    monkeypatch.setattr(environment, "_make", lambda _console: made.append("make"))
    monkeypatch.setattr(environment, "_install", lambda lock, _console: made.append(lock))
    return made


def test_the_environment_is_filled_once_for_a_lock(calls: Calls) -> None:
    ensure("requirements.txt", Console())
    ensure("requirements.txt", Console())
    assert calls == ["requirements.txt"]


def test_the_development_lock_holds_the_other_one_too(calls: Calls) -> None:
    ensure("requirements-dev.txt", Console())
    ensure("requirements.txt", Console())
    assert calls == ["requirements-dev.txt"]


def test_a_changed_lock_fills_it_again_in_place(calls: Calls, tmp_path: Path) -> None:
    ensure("requirements.txt", Console())
    (tmp_path / "requirements.txt").write_text("django==5.3\n")
    ensure("requirements.txt", Console())
    assert calls == ["requirements.txt", "requirements.txt"]


def test_an_environment_that_was_moved_is_made_anew(calls: Calls, tmp_path: Path) -> None:
    digest = sha256((tmp_path / "requirements.txt").read_bytes()).hexdigest()
    (tmp_path / ".venv" / "stamp.json").write_text(
        json.dumps({"path": "/elsewhere/.venv", "requirements.txt": digest})
    )
    ensure("requirements.txt", Console())
    assert calls == ["make", "requirements.txt"]


def test_an_environment_without_its_interpreter_is_made_anew(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    ensure("requirements.txt", Console())
    monkeypatch.setattr(environment, "_runs", lambda _python: False)
    ensure("requirements.txt", Console())
    assert calls == ["requirements.txt", "make", "requirements.txt"]


def test_of_two_runs_at_once_one_fills_it_and_the_other_waits(
    calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_begun, goes_on = threading.Event(), threading.Event()

    def install(lock: str, _console: Console) -> None:
        calls.append(lock)
        has_begun.set()
        assert goes_on.wait(30)

    monkeypatch.setattr(environment, "_install", install)
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(ensure, "requirements-dev.txt", Console())
        assert has_begun.wait(30)
        second = threads.submit(ensure, "requirements.txt", Console())
        with pytest.raises(TimeoutError):
            second.result(0.3)
        goes_on.set()
        first.result(30)
        second.result(30)
    assert calls == ["requirements-dev.txt"]
