"""A history in a directory of the test's own, and callers that do not pause."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.clients import caller, pipes
from chaos.history import History


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    found = History(tmp_path)
    yield found
    found.close()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caller, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(caller, "_REFUSED_READ_SECONDS", 0.05)
    monkeypatch.setattr(pipes, "_LOOK_SECONDS", 0.0)
