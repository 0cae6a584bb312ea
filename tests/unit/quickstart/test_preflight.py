"""The obstacles that the quickstart names before it makes anything."""

from pathlib import Path

import pytest

from quickstart import preflight
from quickstart.errors import OtherDatabase
from quickstart.options import parse


def test_a_database_of_something_else_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = parse(["--data-dir", str(tmp_path / "data")], {})
    monkeypatch.setenv("DATABASE_URL", "postgres://ada:word@127.0.0.1/shop")
    with pytest.raises(OtherDatabase) as refused:
        preflight.check(options)
    assert "word" not in str(refused.value)
    assert not options.data_dir.exists()
    monkeypatch.setenv("DATABASE_URL", "")
    preflight.check(options)
