"""Command line and environment of the quickstart."""

from pathlib import Path

import pytest

from quickstart.errors import UnusablePort
from quickstart.options import ROOT, Options, parse


def test_without_arguments_everything_is_kept_in_the_checkout() -> None:
    assert parse([], {}) == Options(data_dir=ROOT / ".holdline", port=8000, once=False)


def test_a_relative_data_directory_is_meant_from_where_the_caller_stood(tmp_path: Path) -> None:
    chosen = parse(["--data-dir", "my data", "--once"], {"HOLDLINE_CALLED_FROM": str(tmp_path), "PORT": "9001"})
    assert chosen == Options(data_dir=tmp_path / "my data", port=9001, once=True)


@pytest.mark.parametrize("port", ["0", "65536", "http", "-1", "٣", "80 "])
def test_a_port_that_is_none_is_refused_with_what_to_do(port: str) -> None:
    with pytest.raises(UnusablePort, match="is not a port number") as refused:
        parse([], {"PORT": port})
    assert "from 1 to 65535" in refused.value.hint
