"""The protocol's own conformance suite against the real endpoint: what does not pass is in a baseline, with its reason.

The suite's example tools are not ours, so many of its scenarios have nothing to call; the baseline says which.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.bearer_proxy import bearer_proxy
from tests.support.stack import Stack

BASELINE = Path(__file__).resolve().parents[1] / "data" / "mcp_conformance_baseline.yaml"
# The newest release does not know the revision; this one does, and it needs a newer Node than many systems have.
PACKAGES = ("node@22.23.3", "@modelcontextprotocol/conformance@0.2.0-alpha.12")
_INSTALL_SECONDS = 240
_RUN_SECONDS = 120

pytestmark = pytest.mark.skipif(
    shutil.which("npm") is None and not os.environ.get("CI"), reason="npm is not installed; the suite comes from there"
)


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the suite and a Node that runs it."""
    directory = tmp_path_factory.mktemp("conformance")
    (directory / "package.json").write_text('{"private": true}\n')
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-save", *PACKAGES]
    done = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True, timeout=_INSTALL_SECONDS)
    assert done.returncode == 0, done.stderr
    return directory


def test_everything_that_applies_to_the_server_conforms(stack: Stack, suite: Path) -> None:
    bin_directory = suite / "node_modules" / ".bin"
    with bearer_proxy(stack.port, stack.provisioned.token) as origin:
        command = [str(bin_directory / "node"), str(bin_directory / "conformance"), "server", "--url", f"{origin}/mcp"]
        command += ["--requirements", "2026-07-28", "--expected-failures", str(BASELINE)]
        done = subprocess.run(command, cwd=suite, check=False, capture_output=True, text=True, timeout=_RUN_SECONDS)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Total:" in done.stdout
