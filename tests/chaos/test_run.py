"""Runs of faults on a real product, judged by the harness alone."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# Other tests go on beside it, so how long a call took says little about the product.
_LOAD = ["--seed", "1", "--callers", "6", "--beyond", "60"]
_SHORT = [["run", *_LOAD, "--profile", "short", "--seconds", "30"]]
_LONG = [
    ["run", *_LOAD, "--profile", "all", "--seconds", "600"],
    ["run", *_LOAD, "--profile", "all", "--seconds", "600", "--storage", "postgresql"],
    ["mutate"],
]


@pytest.mark.fault
@pytest.mark.timeout(7200)
def test_no_promise_is_broken_by_faults_at_random(is_long: bool) -> None:
    for arguments in _LONG if is_long else _SHORT:
        command = [sys.executable, "-m", "chaos", *arguments]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
