"""A key is made once, by one process, and readable only by its user."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex

from config.settings.key_file import read_or_make_key


def test_a_key_is_made_on_first_use_and_read_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "data" / "key"
    assert read_or_make_key(path, lambda: "first") == "first"
    assert read_or_make_key(path, lambda: "second") == "first"
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["key"]


def test_when_several_start_at_once_one_key_wins(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        keys = list(
            threads.map(
                lambda _: read_or_make_key(tmp_path / "key", lambda: token_hex(8)), range(8)
            )
        )
    assert len(set(keys)) == 1
