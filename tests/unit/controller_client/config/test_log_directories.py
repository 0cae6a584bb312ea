"""Log directories that an operator has to correct are named, with the option and the remedy."""

from pathlib import Path

import pytest

from controller_client.config.errors import ConfigurationError
from controller_client.config.log_directories import faults_of, log_paths


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (root := tmp_path / "logs").mkdir(0o755)
    return root


def test_a_directory_that_can_never_have_logs_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="cannot be a log directory"):
        log_paths(["/proc"], "/tmp/managed")


def test_each_directory_is_named_with_its_own_option(root: Path, tmp_path: Path) -> None:
    managed = tmp_path / "no" / "managed"
    faults = faults_of(log_paths([str(root), str(root / "gone")], str(managed)))
    told = [(text.split(":")[0], remedy.split(" ")[0]) for text, remedy in faults]
    assert told == [
        (f"no log in {managed} can be monitored", "--session-logs"),
        (f"no log in {root / 'gone'} can be monitored", "--log-root"),
    ]


def test_only_the_daemon_makes_the_directory_of_session_logs(root: Path, tmp_path: Path) -> None:
    paths = log_paths([str(root)], str(tmp_path / "managed"))
    assert faults_of(paths, is_daemon=False) == []
    assert not (tmp_path / "managed").exists()
    assert faults_of(paths) == []
    assert (tmp_path / "managed").is_dir()


@pytest.mark.parametrize(
    ("mode", "is_told"), [(0o755, False), (0o775, False), (0o777, True), (0o1777, False)]
)
def test_a_directory_in_which_everybody_can_exchange_logs_is_told(
    root: Path, tmp_path: Path, mode: int, is_told: bool
) -> None:
    (inner := root / "inner").mkdir()
    paths = log_paths([str(root), str(inner)], str(tmp_path / "managed"))
    root.chmod(mode)
    faults = faults_of(paths)
    # Whoever can exchange the directory above can exchange its logs, too.
    assert [remedy for _, remedy in faults] == [f"chmod o-w {root}"] * (2 if is_told else 0)
    named = [text.split(" in ")[1].split(",")[0] for text, _ in faults]
    assert named == ([str(root), str(inner)] if is_told else [])
