"""The doctor names log directories that cannot be used, or that everybody can change."""

from pathlib import Path

import pytest

from controller_client.administration.doctor.logs import examine_logs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (root := tmp_path / "logs").mkdir(0o755)
    return root


def test_log_directories_that_can_be_used_are_listed(root: Path, tmp_path: Path) -> None:
    (found,) = examine_logs([str(root)], str(tmp_path / "managed"))
    assert (found.level, found.text) == (
        "ok",
        f"callers may monitor logs in {tmp_path / 'managed'}, {root}",
    )
    # The daemon makes the directory of session logs, and gives the directory its mode.
    assert not (tmp_path / "managed").exists()


def test_a_missing_log_directory_is_named_with_its_option(root: Path, tmp_path: Path) -> None:
    (found,) = examine_logs([str(root), str(root / "no")], str(tmp_path / "managed"))
    assert found.level == "warning"
    assert found.text == f"no log in {root / 'no'} can be monitored: it does not exist"
    assert "--log-root" in found.remedy


def test_a_log_directory_that_everybody_can_change_is_named(root: Path, tmp_path: Path) -> None:
    root.chmod(0o777)
    (found,) = examine_logs([str(root)], str(tmp_path / "managed"))
    assert (found.level, found.remedy) == ("warning", f"chmod o-w {root}")
    root.chmod(0o1777)
    assert [one.level for one in examine_logs([str(root)], str(tmp_path / "managed"))] == ["ok"]


def test_a_directory_that_can_never_have_logs_is_a_problem() -> None:
    (found,) = examine_logs(["/proc"], None)
    assert (found.level, bool(found.remedy)) == ("problem", True)
