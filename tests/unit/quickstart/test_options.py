"""The command line and the environment become the options of the quickstart."""

from pathlib import Path

import pytest

from quickstart.errors import UnknownHome, UnusablePort
from quickstart.options import ROOT, Options, parse


def test_without_arguments_everything_is_kept_in_the_checkout() -> None:
    assert parse([], {}) == Options(data_dir=ROOT / ".holdline", port=8000, once=False)


def test_a_relative_data_directory_starts_at_the_callers_directory(tmp_path: Path) -> None:
    chosen = parse(
        ["--data-dir", "my data", "--once"], {"HOLDLINE_CALLED_FROM": str(tmp_path), "PORT": "9001"}
    )
    assert chosen == Options(
        data_dir=tmp_path / "my data", port=9001, once=True, is_port_chosen=True
    )


def test_the_directory_of_the_environment_is_the_default(tmp_path: Path) -> None:
    named = {"HOLDLINE_CALLED_FROM": str(tmp_path), "HOLDLINE_DATA_DIR": "its data"}
    chosen = parse([], named)
    assert (chosen.data_dir, chosen.is_of_environment) == (tmp_path / "its data", True)
    chosen = parse(["--data-dir", "mine"], named)
    assert (chosen.data_dir, chosen.is_of_environment) == (tmp_path / "mine", False)
    assert parse([], {"HOLDLINE_DATA_DIR": ""}).data_dir == ROOT / ".holdline"


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "٣", "80 "])
def test_a_wrong_port_is_refused_with_a_hint(port: str) -> None:
    with pytest.raises(UnusablePort, match="is not a port number") as refused:
        parse([], {"PORT": port})
    assert "from 1 to 65535" in refused.value.hint


def test_log_roots_start_at_the_callers_directory(tmp_path: Path) -> None:
    chosen = parse(
        ["--log-root", "logs", "--log-root", "/var/log"], {"HOLDLINE_CALLED_FROM": str(tmp_path)}
    )
    assert chosen.log_roots == (tmp_path / "logs", Path("/var/log"))


def test_the_default_port_does_not_count_as_chosen() -> None:
    assert not parse([], {}).is_port_chosen
    assert parse([], {"PORT": "8000"}).is_port_chosen


@pytest.mark.parametrize("option", ["--data-dir", "--log-root"])
def test_a_home_that_is_nobodys_is_named(option: str) -> None:
    with pytest.raises(UnknownHome, match="~no-such-user"):
        parse([option, "~no-such-user/data"], {})
