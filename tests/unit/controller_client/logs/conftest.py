"""A log file whose files of the past are quiet."""

from pathlib import Path

import pytest

from controller_client.logs import log_file, series
from tests.support.hosts.log_files import write


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Files of the past are quiet; each is older than the next.
    monkeypatch.setattr(log_file, "QUIET_SECONDS", 0.0)
    monkeypatch.setattr(series, "SETTLED_SECONDS", 3600.0)
    monkeypatch.setattr(series, "TICK_SECONDS", 0.0)
    path = tmp_path / "app.log"
    write(path, b"")
    return path
