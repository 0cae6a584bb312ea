"""The build version tells builds of the daemon apart."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import mcp_bridge
from controller_client import __version__
from controller_client.server_link.version import build_version, is_older

ROOT = Path(__file__).resolve().parents[4]


def _of(directory: Path) -> str:
    command = [sys.executable, "-m", "controller_client", "--version"]
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_version_changes_with_the_code_and_nothing_else(tmp_path: Path) -> None:
    copied = tmp_path / "controller_client"
    shutil.copytree(
        ROOT / "controller_client", copied, ignore=shutil.ignore_patterns("__pycache__", "build")
    )
    assert _of(tmp_path) == build_version()
    with (copied / "backoff.py").open("a") as source:
        source.write("# changed\n")
    assert _of(tmp_path) != build_version()


def test_the_version_is_valid_and_fits_its_column() -> None:
    assert re.fullmatch(rf"{re.escape(__version__)}\+[0-9a-f]{{8}}", build_version())
    assert len(build_version()) <= 32


def test_all_parts_have_one_version_and_the_changelog_names_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {__version__, mcp_bridge.__version__, project["version"]} == {__version__}
    assert f"`{__version__}`" in (ROOT / "CHANGELOG.md").read_text().split("## Unreleased")[1][:600]


def test_an_older_release_is_known_by_its_numbers() -> None:
    assert is_older("0.1.0", "0.2.0.dev0")
    assert is_older("0.9.0+1f3a90c2", "0.10")
    assert not is_older("0.2.0.dev0+1f3a90c2", "0.2.0")
    assert not is_older("0.1.0", "")
    assert not is_older("unknown", "0.2.0")
