"""Plots of ``benchmarks.load --json FILE``: ``python -m benchmarks.plot FILE DIRECTORY``

Needs matplotlib, which nothing else does: ``pip install --require-hashes -r
benchmarks/requirements.txt`` into an environment of its own.
"""

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("svg")

from matplotlib import pyplot as plt

_PARTS = {
    "server_cpu": "server processes",
    "database_cpu": "PostgreSQL",
    "hosts_cpu": "simulated hosts",
    "callers_cpu": "callers",
}


def main(figures: Path, directory: Path) -> None:
    """Two plots: the time of a turn, and the processor time of a turn, against the load."""
    points = sorted(json.loads(figures.read_text()), key=lambda point: point["rate"])
    rates = [point["rate"] for point in points]
    # Without dates and random ids the same figures are the same file.
    mpl.rcParams |= {
        "svg.hashsalt": "holdline",
        "svg.fonttype": "none",
        "font.size": 9,
        "axes.grid": True,
        "grid.alpha": 0.3,
    }
    title = f"{points[0]['controllers']} controllers, {points[0]['workers']} server processes"

    figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    for name in ("p50", "p95", "p99"):
        axes.plot(rates, [point[name] for point in points], marker="o", markersize=3, label=name)
    axes.plot(rates, [250] * len(rates), linestyle=":", color="grey", label="target of p99")
    axes.set(
        xlabel="turns per second wanted",
        ylabel="ms from due to answered",
        yscale="log",
        title=f"Time of a turn, {title}",
    )
    axes.legend()
    figure.savefig(directory / "load-latency.svg", metadata={"Date": None})

    figure, axes = plt.subplots(figsize=(5.5, 3.4), layout="constrained")
    axes.stackplot(
        rates,
        [[point[name] for point in points] for name in _PARTS],
        labels=list(_PARTS.values()),
        alpha=0.8,
    )
    axes.set(
        xlabel="turns per second wanted",
        ylabel="processor ms per turn",
        title=f"Cost of a turn, {title}",
    )
    axes.legend(loc="upper right")
    figure.savefig(directory / "load-cost.svg", metadata={"Date": None})


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
