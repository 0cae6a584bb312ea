"""Count early, right and missed claims about random programs, by evidence.

``python -m benchmarks.random_programs [--first SEED] [--count N] [--sessions N]``: a program
waits for input alone only at its end, and its own clock says when that is. The seeds of programs
with an early claim of evidence ``kernel``, and of missed ones, are printed with their parts.
"""

import asyncio
import json
import time
from collections import Counter

from benchmarks.harness import arguments, machine, percentile
from tests.support.random_programs.plans import plan_of
from tests.support.random_programs.play import SESSIONS, Outcome, play_all


def main() -> None:
    """Play the programs of a range of seeds, and print what was claimed."""
    options = arguments(main.__doc__ or "", first=0, count=1000, sessions=SESSIONS)
    print(machine(), flush=True)
    began = time.monotonic()
    seeds = range(options.first, options.first + options.count)
    outcomes = asyncio.run(play_all([plan_of(seed) for seed in seeds], options.sessions))
    seconds = time.monotonic() - began
    print(f"seeds {seeds.start} to {seeds.stop - 1} in {seconds:.0f} s")
    for name, of_all in (("early", _early(outcomes)), ("at last", _at_last(outcomes))):
        print(f"{name:<8} {dict(of_all)}")
    _print_latency(outcomes)
    for seed, outcome in zip(seeds, outcomes, strict=True):
        if outcome.is_disproved or outcome.is_missed:
            word = "early" if outcome.is_disproved else "missed"
            print(f"{word}: {seed} {json.dumps(outcome.plan)}")


def _early(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(evidence for outcome in outcomes for evidence in outcome.early)


def _at_last(outcomes: list[Outcome]) -> Counter[str]:
    return Counter(
        outcome.right or ("missed" if outcome.is_missed else "not asked after an early claim")
        for outcome in outcomes
    )


def _print_latency(outcomes: list[Outcome]) -> None:
    for evidence in ("kernel", "kernel+quiet", "heuristic"):
        seconds = [outcome.seconds for outcome in outcomes if outcome.right == evidence]
        if seconds:
            p50, p90, p99 = (1000 * percentile(seconds, share) for share in (0.5, 0.9, 0.99))
            print(
                f"{evidence:<14} n={len(seconds):<6} p50={p50:.1f} p90={p90:.1f} p99={p99:.1f} ms"
            )


if __name__ == "__main__":
    main()
