"""``python -m benchmarks`` measures every workload to its end, in a small size."""

import json
import subprocess
import sys
from pathlib import Path

from tests.support.stack import PROJECT_ROOT

_EMBEDDED = "w0,w1,w2,w5,readers,w4,idle,storage,listed,ended"


def test_the_table_has_every_workload_and_every_turn_was_right(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks", "--size", "0.02", "--rounds", "1"]
    done = subprocess.run(
        [*command, "--only", _EMBEDDED, "--json", str(figures)],
        cwd=PROJECT_ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    # A wrong turn or a lost byte ends the run.
    assert done.returncode == 0, done.stderr
    measured = json.loads(figures.read_text())
    assert len(measured) == len(_EMBEDDED.split(","))
    for title, sides in measured.items():
        assert f"| {title} |" in done.stdout
        assert all(block for blocks in sides.values() for block in blocks)
    beside_the_floor = [title for title, sides in measured.items() if "floor" in sides]
    assert len(beside_the_floor) == len({"w0", "w1", "w2", "w5"})
