"""A short run of faults on a real product, judged by the harness alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Other tests go on beside it, so how long a call took says little about the product.
_BEYOND_SECONDS = 60


@pytest.mark.fault
@pytest.mark.timeout(1500)
def test_no_promise_is_broken_by_faults_at_random(is_long: bool) -> None:
    profile, seconds = ("all", 600) if is_long else ("short", 30)
    command = [sys.executable, "-m", "chaos", "run", "--seed", "1", "--seconds", str(seconds)]
    command += ["--profile", profile, "--callers", "6", "--beyond", str(_BEYOND_SECONDS)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
