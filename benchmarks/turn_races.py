"""Measure turns from the program's read to the claim, and the processor time of a turn's looks.

``python -m benchmarks.turn_races [--turns N] [--long-turns N] [--seed N]``: turns of each mode with
up to 30 ms of work, and with up to 0.8 s. The program's own clock tells when it begins to read.
Claims before that are early.
"""

from collections import defaultdict

from benchmarks.harness import arguments, machine, mean, percentile
from tests.support.races.turns import LONG_SECONDS, MODES, SHORT_SECONDS, Turn, turns


def main() -> None:
    """Take the turns, and print the figures of each mode and of all."""
    options = arguments(main.__doc__ or "", turns=1400, long_turns=30, seed=0)
    print(machine(), flush=True)
    for name, most_seconds, count in (
        ("short", SHORT_SECONDS, options.turns),
        ("long", LONG_SECONDS, options.long_turns),
    ):
        everything: list[Turn] = []
        for mode in MODES if count else ():
            taken = list(turns(mode, count, most_seconds, options.seed))
            everything += taken
            _print(f"{name} {mode}", taken)
        _print(f"{name} all", everything)


def _print(name: str, taken: list[Turn]) -> None:
    by_evidence: dict[str, list[Turn]] = defaultdict(list)
    for turn in taken:
        by_evidence[turn.evidence].append(turn)
    for evidence, some in sorted(by_evidence.items()):
        right = [turn.seconds for turn in some if not turn.is_early]
        p50, p90, p99 = (
            (1000 * percentile(right, share) for share in (0.5, 0.9, 0.99))
            if right
            else (0.0, 0.0, 0.0)
        )
        print(
            f"{name:<20} {evidence:<13} n={len(some):<6} early={len(some) - len(right):<4} "
            f"p50={p50:7.1f} p90={p90:7.1f} p99={p99:7.1f} ms "
            f"processor={1000 * mean([turn.processor_seconds for turn in some]):6.2f} ms",
            flush=True,
        )


if __name__ == "__main__":
    main()
